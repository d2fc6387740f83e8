"""The kinds that steps and checks name, apart from those of their own manifests: each has a row in the kinds table, and
a namespace only where its objects have one. Otherwise nothing would ever be found, and the plan would hang."""

from __future__ import annotations

from collections.abc import Iterator

from renderer.catalog.kinds import Kinds
from renderer.frozen import frozen
from renderer.model.phase import Step
from renderer.model.probe import BuiltinPredicate, EveryTarget, ObjectTarget, Predicate, Probe, Target
from renderer.suggest import did_you_mean

_ADD_KIND = "correct the name, or add a row for it to a file in _kinds/ of the template tree"


@frozen
class Named:
    """A kind that is named, and how: `names` are those that one object of it may have, none where several objects are
    meant; `all` is what is asked of it."""

    api_version: str
    kind: str
    namespace: str = ""
    names: tuple[str, ...] = ()
    all: tuple[Predicate, ...] = ()


@frozen
class WrongKind:
    """Reason, message and remedy."""

    reason: str
    message: str
    remedy: str


def named_in_probe(probe: Probe) -> Named | None:
    """None where the probe is about a manifest, or about the cluster as a whole."""
    return _named(probe.target, (*probe.all, *probe.fails))


def named_in_step(step: Step, probes: tuple[Probe, ...]) -> Iterator[Named]:
    """`probes` are all of the step's."""
    yield from filter(None, map(named_in_probe, probes))
    yield from filter(None, (_named(capture.target) for capture in step.captures))
    yield from (Named(api_version=field.api_version, kind=field.kind) for field in step.remove_fields)
    for ref in step.late_nodes.by if step.late_nodes else ():
        yield Named(api_version=ref.api_version, kind=ref.kind, namespace=ref.namespace, names=(ref.name,))


def _named(target: Target, predicates: tuple[Predicate, ...] = ()) -> Named | None:
    match target:
        case ObjectTarget(ref=ref, others=others):
            return Named(
                api_version=ref.api_version,
                kind=ref.kind,
                namespace=ref.namespace,
                names=(ref.name, *(other.name for other in others)),
                all=predicates,
            )
        case EveryTarget():
            return Named(
                api_version=target.api_version,
                kind=target.kind,
                namespace=target.namespace,
                all=(*target.where, *predicates),
            )
        case _:
            return None


def wrong_kind(named: Named, kinds: Kinds) -> WrongKind | None:
    """The problem with a kind that is named; None if there is none. A name that still holds marks is not judged."""
    if "{{" in named.api_version + named.kind:
        return None
    row = kinds.find(named.api_version, named.kind)
    if row is None:
        near = did_you_mean(named.kind, [row.kind.kind for row in kinds if row.kind.api_version == named.api_version])
        message = f"{named.api_version} {named.kind} is not in the kinds table{near}"
        return WrongKind(reason="UnknownKind", message=message, remedy=_ADD_KIND)
    if row.kind.namespaced and named.names and not named.namespace:
        message = f"{named.kind} objects have a namespace, and none is given"
        return WrongKind(reason="InvalidProbe", message=message, remedy="add the object's namespace")
    if named.namespace and not row.kind.namespaced:
        message = f"{named.kind} objects have no namespace, and {named.namespace!r} is given"
        return WrongKind(reason="InvalidProbe", message=message, remedy="remove the namespace")
    if row.ready is None and any(isinstance(item, BuiltinPredicate) for item in named.all):
        remedy = "add `ready` to its row in _kinds/, or state the expected condition"
        return WrongKind(reason="NoRule", message=f"{named.kind} has no readiness rule", remedy=remedy)
    return None
