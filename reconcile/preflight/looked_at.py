"""All that checks look at, so that it can be collected: what they have looked at on this cluster, and what they would
look at if a plan or a release were given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconcile.probes.evaluate import group_of
from reconcile.probes.look import Group, Need
from renderer.catalog.checks import DeclaredCheck
from renderer.model.probe import EveryTarget, ObjectTarget
from renderer.model.ref import Ref
from renderer.templating import has_marks

_BY_NAME = ("Secret", "Setting")
"""Kinds of which single objects are collected: others of them hold what is secret."""


def looked_at(checks: Iterable[DeclaredCheck], seen: Iterable[Need]) -> tuple[Group | Ref, ...]:
    """Groups of whole kinds, or of a namespace of one, and objects; none twice."""
    needs = dict.fromkeys([*_declared(checks), *(need for need in seen if isinstance(need, (Group, Ref)))])
    groups = dict.fromkeys(_whole(need) for need in needs if isinstance(need, Group) and need.kind not in _BY_NAME)
    refs = [need for need in needs if isinstance(need, Ref)]
    widest = [group for group in groups if not any(other.includes(group) for other in groups if other != group)]
    return (*widest, *(ref for ref in refs if not any(group.holds(ref) for group in widest)))


def _declared(checks: Iterable[DeclaredCheck]) -> Iterator[Group | Ref]:
    for declared in checks:
        target = declared.check.probe.target
        if isinstance(target, EveryTarget):
            yield group_of(target)
        elif isinstance(target, ObjectTarget):
            ref = target.ref
            if not has_marks(ref.name):
                yield ref
            elif not has_marks(ref.namespace):
                yield Group(api_version=ref.api_version, kind=ref.kind, namespace=ref.namespace)


def _whole(group: Group) -> Group:
    return Group(api_version=group.api_version, kind=group.kind, namespace=group.namespace)
