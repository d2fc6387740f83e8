"""Finds the plan's objects by their labels: an object may have another name than the one rendered now, and its node may
have left. The labels still tell which step made it, and whether it is deleted when the plan ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from reconcile.decide.builder import DecisionBuilder
from reconcile.objects import LISTED_IN_PART, NODE_LABEL, PLAN_LABEL, controller, has_labels, is_owned_by, uid
from reconcile.probes.look import Group, ReadFailure
from reconcile.status.plan import key_of
from reconcile.status.record import OwnedObject
from reconcile.status.times import time_of
from renderer.model.manifest_spec import Occasion, Owned
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.rendered import Manifest, RenderedStep

_LABELS = ("metadata", "labels")
_Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """The labels of a manifest without the node's, and whether objects with them are deleted."""

    labels: _Labels
    goes: bool


def node_of(body: Body) -> str | None:
    """The node for which an object was made, by its label."""
    node = look_up(body, (*_LABELS, NODE_LABEL))
    return str(node) if node else None


def groups_of_nodes(steps: Iterable[RenderedStep]) -> tuple[Group, ...]:
    """The groups in which to find objects that the steps make for nodes, for any node."""
    owned = (manifest for item in steps if item.step.node for manifest in _owned(item))
    found = (_group(manifest.ref, _marked(manifest)) for manifest in owned if node_of(manifest.body))
    return tuple(dict.fromkeys(found))


def groups_of_plan(builder: DecisionBuilder, steps: Iterable[RenderedStep]) -> tuple[Group, ...]:
    """The groups in which to find objects of the plan: each kind and namespace of what is rendered or recorded."""
    rendered = [manifest.ref for item in steps for manifest in _owned(item)]
    recorded = [made.ref for made in builder.status.all_objects()]
    label = ((PLAN_LABEL, builder.observation.rendered.plan),)
    return tuple(dict.fromkeys(_group(ref, label) for ref in (*rendered, *recorded)))


def made_before(builder: DecisionBuilder, item: RenderedStep) -> tuple[OwnedObject, ...]:
    """Existing objects with the labels of what the step makes, whatever their names: a retry may have been requested
    since."""
    found: dict[Ref, OwnedObject] = {}
    for manifest in _owned(item):
        bodies = found_in(builder, _group(manifest.ref, _labels(manifest)), (manifest.ref,))
        for body in () if isinstance(bodies, ReadFailure) else bodies:
            found.setdefault(ref_of(body), replace(OwnedObject.of(manifest), ref=ref_of(body)))
    return tuple(found.values())


def found_in(builder: DecisionBuilder, group: Group, known: Iterable[Ref]) -> tuple[Body, ...] | ReadFailure:
    """The objects of a group; of a kind that no list has all of, those of the `known` names that are the plan's."""
    look = builder.observation.look
    if (group.api_version, group.kind) not in LISTED_IN_PART:
        return look.list(group)
    found = [look.get(ref) for ref in known]
    if failures := [body for body in found if isinstance(body, ReadFailure)]:
        return failures[0]
    plan = uid(builder.observation.plan)
    return tuple(body for body in found if body and not isinstance(body, ReadFailure) and is_owned_by(body, plan))


def existing(builder: DecisionBuilder, item: RenderedStep) -> Iterator[Body]:
    """Yields what the step makes, as far as it is there and is the plan's, by whatever name."""
    refs = [*(made.ref for made in made_before(builder, item)), *(manifest.ref for manifest in _owned(item))]
    found = (builder.observation.look.get(ref) for ref in dict.fromkeys(refs))
    plan = uid(builder.observation.plan)
    yield from (body for body in found if body and not isinstance(body, ReadFailure) and is_owned_by(body, plan))


def created(builder: DecisionBuilder, item: RenderedStep) -> datetime | None:
    """The time when the first of the objects was created that the step makes; None if there is none."""
    times = [look_up(body, ("metadata", "creationTimestamp")) for body in existing(builder, item)]
    return min((time_of(text) for text in times if isinstance(text, str)), default=None)


class Leaving:
    """The objects that are deleted on an occasion: as the step that made them declares, and those of no known step."""

    def __init__(self, builder: DecisionBuilder, steps: Iterable[RenderedStep], occasion: Occasion) -> None:
        self._plan = uid(builder.observation.plan)
        self._known: dict[Ref, bool] = {}
        self._marks: dict[tuple[str, str, str], set[_Mark]] = {}
        for item in steps:
            self._learn(item, builder.status.objects_of(key_of(item)), occasion)
        self._places = {ref: place for place, ref in enumerate(self._known)}

    def __contains__(self, body: Body) -> bool:
        ref = ref_of(body)
        if ref in self._known:
            return self._known[ref]
        owner = controller(body)
        if owner is not None and owner.get("uid") != self._plan:  # it goes with what has made it
            return False
        marks = [mark for mark in self._marks.get(_place(ref), ()) if has_labels(body, mark.labels)]
        return all(mark.goes for mark in marks if len(mark.labels) == max(len(other.labels) for other in marks))

    def place_of(self, body: Body) -> int:
        """The object's place in the order of the steps; unknown ones come last."""
        return self._places.get(ref_of(body), len(self._places))

    def known(self, group: Group) -> tuple[Ref, ...]:
        """The refs of a group that are deleted, as far as they are known."""
        return tuple(ref for ref, goes in self._known.items() if goes and _group(ref, group.labels) == group)

    def _learn(self, item: RenderedStep, recorded: Iterable[OwnedObject], occasion: Occasion) -> None:
        goes = {spec.file: occasion in spec.cleanup for spec in item.step.manifests if isinstance(spec, Owned)}
        for manifest in _owned(item):
            self._known[manifest.ref] = goes[manifest.spec.file]
            mark = _Mark(labels=_marked(manifest), goes=goes[manifest.spec.file])
            self._marks.setdefault(_place(manifest.ref), set()).add(mark)
        for made in recorded:
            self._known[made.ref] = goes.get(made.template, True)


def _owned(item: RenderedStep) -> Iterator[Manifest]:
    return (manifest for manifest in item.manifests if isinstance(manifest.spec, Owned))


def _labels(manifest: Manifest) -> _Labels:
    labels = look_up(manifest.body, _LABELS)
    return tuple(sorted((key, str(value)) for key, value in labels.items())) if labels else ()


def _marked(manifest: Manifest) -> _Labels:
    return tuple((key, value) for key, value in _labels(manifest) if key != NODE_LABEL)


def _group(ref: Ref, labels: _Labels) -> Group:
    return Group(api_version=ref.api_version, kind=ref.kind, namespace=ref.namespace, labels=labels)


def _place(ref: Ref) -> tuple[str, str, str]:
    return ref.api_version, ref.kind, ref.namespace
