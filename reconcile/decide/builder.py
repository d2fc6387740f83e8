"""A decision while it is being made: the one place in the pure core that is changed as it goes."""

from __future__ import annotations

from datetime import datetime

from reconcile.decide.decision import Action, Decision, Wait
from reconcile.decide.observation import Observation
from reconcile.objects import deletion_timestamp
from reconcile.status.conditions import PlanCondition
from reconcile.status.plan import PlanStatus, StepKey
from reconcile.status.record import StepRecord
from reconcile.status.times import time_of
from renderer.model.probe import Event
from renderer.model.ref import Ref

LONG = 7200
"""Seconds without any progress after which a wait that has no limit of its own is said to take long."""
LONG_TO_READ = 900
"""The same for what could not be read, or does not go."""
RECHECK = 10.0
"""Seconds until a wait is looked at again although nothing was seen to change: what is not watched moves too."""


class DecisionBuilder:
    """Collects status changes, actions, events and waits, then becomes a `Decision`."""

    def __init__(self, observation: Observation, status: PlanStatus) -> None:
        self.observation = observation
        self.status = status
        self.actions: list[Action] = []
        self.events: list[Event] = []
        self.waits: list[Wait] = []
        self.passes: dict[tuple[str, int], int] = {}
        self.failures: list[str] = []
        self.progress = ""
        self.held: dict[str, list[str]] = {}
        self._progress: dict[str, datetime] = {}

    def idle_since(self, phase: str) -> datetime:
        """When a step of the phase last began or ended, on any node; before the first one, `since`."""
        if phase not in self._progress:
            self._progress[phase] = max(self.status.last_progress(phase) or self.since, self.since)
        return self._progress[phase]

    @property
    def since(self) -> datetime:
        """When the plan came to where it stands: since then it is being deleted, or in its phase, or there at all."""
        plan = self.observation.plan
        text = deletion_timestamp(plan) or self.status.last_transition() or plan["metadata"].get("creationTimestamp")
        return time_of(text) if text else self.now

    def wait(
        self,
        text: str,
        *,
        step: str = "",
        node: str | None = None,
        since: datetime | None = None,
        limit: int | None = LONG,
        unknown: bool = False,
        refs: tuple[Ref, ...] = (),
    ) -> None:
        """Adds a wait, that lasts since `since` or since the plan came to where it stands. Without a `limit` none takes
        too long: somebody wants it so, or it is another one's turn."""
        start = since or self.since
        slow = limit is not None and self.observation.attended(start) > limit
        found = Wait(text=text, step=step, node=node, since=start, limit=limit, slow=slow, unknown=unknown, refs=refs)
        self.waits.append(found)

    @property
    def now(self) -> datetime:
        return self.observation.now

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the upgrade, by name."""
        return self.observation.rendered.nodes

    @property
    def generation(self) -> int:
        return int((self.observation.plan.get("metadata") or {}).get("generation") or 0)

    def enter(self, phase: str) -> None:
        self.status = self.status.with_phase(phase, self.now)

    def record(self, key: StepKey, record: StepRecord) -> None:
        self.status = self.status.with_record(key, record)

    def condition(self, kind: str, status: str, reason: str, message: str = "") -> None:
        wanted = PlanCondition(type=kind, status=status, reason=reason, message=message)
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
