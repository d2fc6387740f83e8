"""Looks for causes in what was read for a decision, as a journal has it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.decide.decision import Decision
from reconcile.decide.observation import Observation
from reconcile.diagnosis.diagnosing import diagnose, knowledge_of
from reconcile.diagnosis.of_plan import situation_of, waits_for_nothing
from reconcile.diagnosis.situation import Cause
from reconcile.loop.rendering import Rendering
from reconcile.observe.snapshot import NotReadError, Snapshot
from reconcile.probes.look import Answer, Group, ReadFailure, Reading
from renderer.model.ref import Body, Ref

_NOT_READ_THEN = ReadFailure(why="it was not read then")


def causes_then(world: Observation, decision: Decision, rendering: Rendering) -> tuple[Cause, ...]:
    """The causes that can be seen in what was read for the decision. A loop reads less than `explain` does."""
    if waits_for_nothing(world.plan, decision) or not isinstance(world.look, Snapshot):
        return ()
    context = rendering.check_context(world.plan, (), world.schemas, world.now)
    situation = situation_of(world.plan, decision, world.rendered, _ReadThen(world.look), world.now)
    return diagnose(knowledge_of(rendering.catalog, context), situation).causes


class _ReadThen:
    """A `Look` over a snapshot. Of a kind that was not listed there are the objects that were read one by one."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        try:
            return self._snapshot.get(ref)
        except NotReadError:
            return _NOT_READ_THEN

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        try:
            return self._snapshot.list(group)
        except NotReadError:
            return tuple(self._single(group)) or _NOT_READ_THEN

    def _single(self, group: Group) -> Iterator[Body]:
        for ref, body in self._snapshot.objects.items():
            if group.holds(ref) and body is not None and not isinstance(body, ReadFailure):
                yield body

    def reading(self, reading: Reading, name: str) -> Answer:
        try:
            return self._snapshot.reading(reading, name)
        except NotReadError:
            return _NOT_READ_THEN
