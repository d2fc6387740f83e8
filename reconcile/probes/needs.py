"""What must have been read before a probe can be answered, so that all reads come before the first decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcile.probes.evaluate import group_of
from reconcile.probes.look import Need, ProbeContext
from reconcile.probes.predicates import own_rule
from reconcile.probes.rules.table import rule_named
from renderer.model.probe import (
    BuiltinPredicate,
    ClusterTarget,
    EveryTarget,
    ManifestTarget,
    ObjectTarget,
    Predicate,
    Probe,
    RulePredicate,
    Target,
)
from renderer.model.ref import Ref

_Looked = Ref | EveryTarget | None  # None is the cluster as a whole


def needs(probe: Probe, scope: ProbeContext) -> tuple[Need, ...]:
    """Refs, groups and readings, each once, in the order in which they are come across.

    Raises `Problems` as `evaluate` does.
    """
    found: list[Need] = []
    for looked in _looked(probe.target, scope):
        found += _objects(looked)
        where = looked.where if isinstance(looked, EveryTarget) else ()
        for predicate in (*where, *probe.all, *probe.fails):
            found += _predicate(predicate, looked, scope)
    return tuple(dict.fromkeys(found))


def target_needs(target: Target, scope: ProbeContext) -> tuple[Need, ...]:
    """The objects of a target alone, as for a field that is captured when a step starts."""
    return tuple(need for looked in _looked(target, scope) for need in _objects(looked))


def _looked(target: Target, scope: ProbeContext) -> Iterable[_Looked]:
    match target:
        case ObjectTarget(ref=ref):
            return (ref,)
        case ManifestTarget(file=file):
            return scope.manifests.get(file, ())
        case EveryTarget():
            return (target,)
        case ClusterTarget():
            return (None,)


def _objects(looked: _Looked) -> tuple[Need, ...]:
    match looked:
        case Ref():
            return (looked,)
        case EveryTarget():
            return (group_of(looked),)
        case None:
            return ()


def _predicate(predicate: Predicate, looked: _Looked, scope: ProbeContext) -> Iterator[Need]:
    if isinstance(predicate, RulePredicate):
        yield from rule_named(predicate.name).needs(looked, dict(predicate.arguments))
    if isinstance(predicate, BuiltinPredicate) and looked is not None:
        ready = own_rule(scope.kinds, looked.api_version, looked.kind)
        for part in (*ready.all, *ready.fails):
            yield from _predicate(part, looked, scope)
