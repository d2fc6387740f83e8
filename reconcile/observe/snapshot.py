"""What was read in one round: the needs of a decision, each answered once. It is all that the decision can see."""

from __future__ import annotations

from collections.abc import Iterable

from reconcile.observe.readings import Readings
from reconcile.observe.source import Source
from reconcile.probes.look import Answer, Group, Need, ReadFailure, Reading
from renderer.model.ref import Body, Ref, ref_of

_UNASKED = ReadFailure(why="it was not read")


class Snapshot:
    """A `Look` over what was read. A group also answers for its objects one by one, and for narrower groups."""

    def __init__(self) -> None:
        self.objects: dict[Ref, Body | ReadFailure | None] = {}
        self.groups: dict[Group, tuple[Body, ...] | ReadFailure] = {}
        self.readings: dict[str, dict[str, Answer]] = {}
        self._members: dict[Group, dict[Ref, Body]] = {}

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        if ref in self.objects:
            return self.objects[ref]
        for group, found in self.groups.items():
            if _covers(group, ref) and not isinstance(found, ReadFailure):
                return self._by_ref(group, found).get(ref)
        return _UNASKED

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        if group in self.groups:
            return self.groups[group]
        for wider, found in self.groups.items():
            if _holds(wider, group):
                return found if isinstance(found, ReadFailure) else _within(found, group)
        return _UNASKED

    def _by_ref(self, group: Group, found: tuple[Body, ...]) -> dict[Ref, Body]:
        """The group's objects; every node of many asks for its own."""
        if group not in self._members:
            self._members[group] = {ref_of(body): body for body in found}
        return self._members[group]

    def reading(self, reading: Reading, name: str) -> Answer:
        return self.readings.get(reading.name, {}).get(name, _UNASKED)


def take(needs: Iterable[Need], source: Source, readings: Readings) -> Snapshot:
    """Reads everything that is needed. Raises `Away` and its like; an object that cannot be read is `ReadFailure`."""
    snapshot = Snapshot()
    wanted = list(needs)
    for group in (need for need in wanted if isinstance(need, Group)):
        snapshot.groups[group] = source.list(group)
    for ref in (need for need in wanted if isinstance(need, Ref)):
        if snapshot.get(ref) is _UNASKED:
            snapshot.objects[ref] = source.get(ref)
    for reading in (need for need in wanted if isinstance(need, Reading)):
        snapshot.readings[reading.name] = readings.read(reading, _known(snapshot.list(reading.of)))
    return snapshot


def _known(found: tuple[Body, ...] | ReadFailure) -> tuple[Body, ...]:
    return () if isinstance(found, ReadFailure) else found


def _covers(group: Group, ref: Ref) -> bool:
    """Whether the group, unlabelled, would hold the object if it exists."""
    same = (group.api_version, group.kind) == (ref.api_version, ref.kind)
    return same and not group.labels and group.namespace in ("", ref.namespace)


def _holds(wider: Group, group: Group) -> bool:
    same = (wider.api_version, wider.kind) == (group.api_version, group.kind)
    return same and wider.namespace in ("", group.namespace) and set(wider.labels) <= set(group.labels)


def _within(found: tuple[Body, ...], group: Group) -> tuple[Body, ...]:
    return tuple(
        body
        for body in found
        if group.namespace in ("", ref_of(body).namespace)
        and set(group.labels) <= set((body["metadata"].get("labels") or {}).items())
    )
