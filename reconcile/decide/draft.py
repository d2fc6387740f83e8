"""A decision while it is being made: the one place in the pure core that is changed as it goes."""

from __future__ import annotations

from datetime import datetime

from reconcile.decide.decision import Action, Decision, Wait
from reconcile.decide.world import World
from reconcile.status.conditions import Condition
from reconcile.status.plan import PlanStatus, StepKey
from reconcile.status.record import StepRecord
from renderer.model.probe import Event

RECHECK = 10.0
"""Seconds until a wait is looked at again although nothing was seen to change: what is not watched moves too."""


class Draft:
    """Collects status changes, actions, events and waits, then becomes a `Decision`."""

    def __init__(self, world: World, status: PlanStatus) -> None:
        self.world = world
        self.status = status
        self.actions: list[Action] = []
        self.events: list[Event] = []
        self.waits: list[Wait] = []
        self.passes: dict[tuple[str, int], int] = {}
        self.progress = ""
        self.held: dict[str, list[str]] = {}
        self._progress: dict[str, datetime | None] = {}

    def idle_since(self, phase: str) -> datetime | None:
        """When a step of the phase last began or ended, on any node; None before the first one."""
        if phase not in self._progress:
            self._progress[phase] = self.status.last_progress(phase)
        return self._progress[phase]

    @property
    def now(self) -> datetime:
        return self.world.now

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the upgrade, by name."""
        return self.world.rendered.nodes

    @property
    def generation(self) -> int:
        return int((self.world.plan.get("metadata") or {}).get("generation") or 0)

    def enter(self, phase: str) -> None:
        self.status = self.status.with_phase(phase, self.now)

    def record(self, key: StepKey, record: StepRecord) -> None:
        self.status = self.status.with_record(key, record)

    def condition(self, kind: str, status: str, reason: str, message: str = "") -> None:
        wanted = Condition(type=kind, status=status, reason=reason, message=message)
        self.status = self.status.with_condition(wanted, self.now, self.generation)

    def event(self, kind: str, reason: str, message: str) -> None:
        self.events.append(Event(type=kind, reason=reason, message=message))

    def decision(self, before: PlanStatus) -> Decision:
        again = self.status != before or bool(self.actions)
        return Decision(
            status=self.status,
            actions=tuple(self.actions),
            events=tuple(self.events),
            waits=tuple(self.waits),
            recheck=RECHECK if self.waits else None,
            again=again,
            passes=self.passes,
        )
