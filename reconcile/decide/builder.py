"""Collects a decision: the one thing in the pure core that changes as it goes. Waits are collected and dated here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter
from typing import Any

from reconcile.borrow.loan import Loan
from reconcile.decide.decision import Action, BlockingCheck, Decision, Wait
from reconcile.decide.decision_cache import DecisionCache
from reconcile.decide.observation import Observation
from reconcile.objects import deletion_timestamp
from reconcile.status.conditions import PlanCondition
from reconcile.status.plan import PlanStatus, StepKey
from reconcile.status.record import StepRecord
from reconcile.status.times import time_of
from renderer.model.probe import Event
from renderer.model.ref import Ref
from renderer.model.sharing import SameObject

LONG = 7200
"""Seconds without progress after which a wait without a limit of its own is reported as slow."""
LONG_TO_READ = 900
"""The same for what cannot be read or deleted."""
STEP_WARNING = "StepWarning"
"""The reason of an event about what a step lets pass, or leaves undone."""
RECHECK = 10.0
"""Seconds until a wait is checked again without an event: not everything is watched."""

_TEXT = attrgetter("text")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitRequest:
    """A wait as a step asks for it. It began at `since`, or when the plan reached its present state. Its limit counts
    from then, or from `counted`, or since anything last moved in the phase that `idle` names."""

    text: str
    step: str = ""
    node: str | None = None
    since: datetime | None = None
    counted: datetime | None = None
    idle: str | None = None
    limit: int | None = LONG
    unknown: bool = False
    refs: tuple[Ref, ...] = ()
    summary: str = ""
    check: BlockingCheck | None = None


class DecisionBuilder:
    """Collects status changes, actions, events and waits, then becomes a `Decision`. Its texts hold nothing secret:
    they quote objects."""

    def __init__(self, observation: Observation, status: PlanStatus, cache: DecisionCache | None = None) -> None:
        """`cache` has what earlier decisions came to, where nothing has changed since: it saves time and no more."""
        self.observation = observation
        self.status = status
        self.cache = cache if cache is not None else DecisionCache()
        self.actions: list[Action] = []
        self.events: list[Event] = []
        self.waits: list[Wait] = []
        self.asked: list[WaitRequest] = []
        self.timed: list[tuple[datetime, int, bool]] = []
        self.passes: dict[tuple[str, int], int] = {}
        self.failures: list[str] = []
        self.progress = ""
        self.held: dict[str, set[str]] = {}
        self.closed: set[str] = set()
        self.saw_others = False
        self.taken_over = False
        self.errors = list(observation.errors)
        self._progress: dict[str, datetime] = {}
        self._idle: dict[tuple[str, int | None], tuple[datetime, bool]] = {}
        self.recorded_waits: dict[str, datetime] = {}
        self.common: tuple[SameObject, str, tuple[Any, ...], Mapping[str, tuple[Loan, ...]]] | None = None

    def idle_since(self, phase: str) -> datetime:
        """The time when a step of the phase last started or ended, on any node; before the first one, `since`."""
        if phase not in self._progress:
            self._progress[phase] = max(self.status.last_progress(phase) or self.since, self.since)
        return self._progress[phase]

    def reached(self, phase: str, node: str | None) -> datetime:
        """The time when the steps before this one ended, for the node or the cluster; before the first, `since`."""
        return max(self.status.last_end_at(phase, node) or self.since, self.since)

    def waiting_since(self, what: str) -> datetime:
        """The time when a wait began whose beginning no step's record tells: it is recorded as long as it holds."""
        self.recorded_waits[what] = self.status.waiting.get(what, self.now.replace(microsecond=0))
        return self.recorded_waits[what]

    @property
    def since(self) -> datetime:
        """The time when the plan reached its present state: it was deleted, entered its phase, or was created."""
        plan = self.observation.plan
        text = deletion_timestamp(plan) or self.status.last_transition() or plan["metadata"].get("creationTimestamp")
        return time_of(text) if text else self.now

    def wait(
        self,
        text: str,
        *,
        step: str = "",
        node: str | None = None,
        limit: int | None = LONG,
        unknown: bool = False,
        refs: tuple[Ref, ...] = (),
    ) -> None:
        """Adds a wait that began when the plan reached its present state."""
        self.ask(WaitRequest(text=text, step=step, node=node, limit=limit, unknown=unknown, refs=refs))

    def ask(self, asked: WaitRequest) -> None:
        """Adds a wait. Without a `limit` it is never slow: the operator asked for it, or it is another node's turn."""
        self.waits.append(self.waiting(asked))
        self.asked.append(asked)

    def waiting(self, asked: WaitRequest) -> Wait:
        """The wait as it is now."""
        counted, slow = self.counted(asked)
        return Wait(
            text=asked.text,
            step=asked.step,
            node=asked.node,
            since=asked.since or self.since,
            counted=counted,
            limit=asked.limit,
            slow=slow,
            unknown=asked.unknown,
            refs=asked.refs,
            summary=asked.summary,
            check=asked.check,
        )

    def counted(self, asked: WaitRequest) -> tuple[datetime, bool]:
        """The time from which the wait's limit counts, and whether it is exceeded. Many nodes wait for the same."""
        if asked.idle is None:
            return self._counted(asked.counted or asked.since or self.since, asked.limit)
        return self.idle(asked.idle, asked.limit)

    def idle(self, phase: str, limit: int | None) -> tuple[datetime, bool]:
        """The same of a wait that counts from when anything last moved in the phase."""
        key = phase, limit
        if key not in self._idle:
            self._idle[key] = self._counted(self.idle_since(phase), limit)
        return self._idle[key]

    def _counted(self, counted: datetime, limit: int | None) -> tuple[datetime, bool]:
        return counted, limit is not None and self.observation.attended(counted) > limit

    def wait_for_operator(
        self, text: str, *, step: str = "", since: datetime | None = None, refs: tuple[Ref, ...] = ()
    ) -> None:
        """Adds a wait that does not end before somebody acts."""
        self.ask_operator(WaitRequest(text=text, step=step, since=since, refs=refs))

    def ask_operator(self, asked: WaitRequest) -> None:
        """The same for a wait as a step asks for it: it counts as slow without a limit of its own."""
        self.waits.append(replace(self.waiting(asked), counted=None, limit=None, slow=True))

    def is_past(self, since: datetime, limit: int) -> bool:
        """True if more than so many seconds count since then."""
        past = self.observation.attended(since) > limit
        self.timed.append((since, limit, past))
        return past

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

    def move_node(self, node: str, state: str, reason: str = "", message: str = "") -> None:
        """Puts a node into a state, unless it is past that state."""
        states = self.observation.rendered.node_states
        self.status = self.status.with_node(node, state, states, reason=reason, message=self._redact(message))

    def condition(self, kind: str, status: str, reason: str, message: str = "") -> None:
        condition = PlanCondition(type=kind, status=status, reason=reason, message=self._redact(message))
        self.status = self.status.with_condition(condition, self.now, self.generation)

    def event(self, kind: str, reason: str, message: str) -> None:
        self.events.append(Event(type=kind, reason=reason, message=message))

    def _redact(self, text: str) -> str:
        return self.observation.redactor.text(text)

    def decision(self, before: PlanStatus) -> Decision:
        self.status = replace(self.status, waiting=self.recorded_waits)
        again = self.status != before or bool(self.actions)
        texts = {
            text: self.cache.texts.get(text) or self._redact(text) for text in dict.fromkeys(map(_TEXT, self.waits))
        }
        self.cache.texts = texts
        redacted = {text: shown for text, shown in texts.items() if shown != text}
        return Decision(
            status=self.status,
            actions=tuple(self.actions),
            events=tuple(replace(event, message=self._redact(event.message)) for event in self.events),
            waits=tuple(
                replace(wait, text=redacted[wait.text]) if wait.text in redacted else wait for wait in self.waits
            )
            if redacted
            else tuple(self.waits),
            recheck=RECHECK if self.waits else None,
            again=again,
            passes=self.passes,
        )
