"""The result of a decision: the status to record, the writes to make, the events to emit, and what is waited for.

`DecisionBuilder` collects a decision: it is the one thing in the pure core that changes as it goes. `recorded` is the
status once the writes were made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from reconcile.borrow.fields import Patch
from reconcile.borrow.loan import Loan, settle
from reconcile.decide.kept import Kept
from reconcile.decide.observation import Observation
from reconcile.objects import deletion_timestamp
from reconcile.status.conditions import PlanCondition
from reconcile.status.plan import PlanStatus, StepKey
from reconcile.status.record import StepRecord, StepState
from reconcile.status.times import time_of, time_text
from renderer.model.path import Path
from renderer.model.probe import Event
from renderer.model.ref import Ref
from renderer.model.rendered import Manifest
from renderer.model.sharing import SameObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Apply:
    """Apply an owned object. `step` is None where a maintained object is restored."""

    manifest: Manifest
    step: StepKey | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Borrow:
    """Set fields on somebody else's object. The original values are in the status already."""

    manifest: Manifest
    patch: Patch
    step: StepKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Return:
    """Restore the original values, then remove our field ownership. `settled` are the loans that end with it."""

    ref: Ref
    patch: Patch | None
    settled: tuple[Loan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Remove:
    """Delete an object of ours; the `uid` is a precondition."""

    ref: Ref
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveTrace:
    """Remove a field that others have left on an object because of us."""

    ref: Ref
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFinalizer:
    """Add our finalizer to the plan, or remove it, which lets a deleted plan go."""

    present: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Annotate:
    """Set annotations of the plan, or remove those without a value."""

    annotations: tuple[tuple[str, str | None], ...]


Action = Apply | Borrow | Return | Remove | RemoveTrace | SetFinalizer | Annotate


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockingCheck:
    """A pre-flight check because of which a step does not begin: everything that it found, or could not see, what to
    do about it, each thing once, and what accepts the risk, empty where nothing does."""

    id: str
    title: str
    found: tuple[str, ...]
    remedies: tuple[str, ...]
    accept: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Something that the plan waits for: which step, on which node, what, and since when.

    `text` names objects and fields as they were compared; `summary` says it in the phase's own words, if it has any.
    `slow`: somebody has to act, for example because it takes longer than `limit` seconds, which are `counted` from a
    later time where others move meanwhile. `unknown`: it could not be read. `check`: it is a check that blocks.
    """

    text: str
    step: str = ""
    node: str | None = None
    since: datetime | None = None
    counted: datetime | None = None
    limit: int | None = None
    slow: bool = False
    unknown: bool = False
    refs: tuple[Ref, ...] = ()
    summary: str = ""
    check: BlockingCheck | None = None

    @property
    def words(self) -> str:
        """The wait as people are shown it, in conditions and logs as well."""
        return f"waits for {self.summary}" if self.summary else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`status` is written first if it differs from what was read, then `actions` are carried out, then `events` are
    emitted.

    `recheck`: seconds until the next round even if nothing changes. `again`: there is more to do right after this
    round. `passes` goes into the next `Observation`.
    """

    status: PlanStatus
    actions: tuple[Action, ...] = ()
    events: tuple[Event, ...] = ()
    waits: tuple[Wait, ...] = ()
    recheck: float | None = None
    again: bool = False
    passes: dict[tuple[str, int], int] = field(default_factory=dict)


LONG = 7200
"""Seconds without progress after which a wait without a limit of its own is reported as slow."""
LONG_TO_READ = 900
"""The same for what cannot be read or deleted."""
STEP_WARNING = "StepWarning"
"""The reason of an event about what a step lets pass, or leaves undone."""
RECHECK = 10.0
"""Seconds until a wait is checked again without an event: not everything is watched."""


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

    def __init__(self, observation: Observation, status: PlanStatus, kept: Kept | None = None) -> None:
        """`kept` has what earlier decisions came to, where nothing has changed since: it saves time and no more."""
        self.observation = observation
        self.status = status
        self.kept = kept if kept is not None else Kept()
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
        """The time from which the wait's limit counts, and whether it is exceeded."""
        counted = self.idle_since(asked.idle) if asked.idle else asked.counted or asked.since or self.since
        return counted, asked.limit is not None and self.observation.attended(counted) > asked.limit

    def wait_for_operator(
        self, text: str, *, step: str = "", since: datetime | None = None, refs: tuple[Ref, ...] = ()
    ) -> None:
        """Adds a wait that does not end before somebody acts."""
        self.ask_operator(WaitRequest(text=text, step=step, since=since, refs=refs))

    def ask_operator(self, asked: WaitRequest) -> None:
        """The same for a wait as a step asks for it: it is slow whatever its limit."""
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
        return self.observation.redact(text)

    def decision(self, before: PlanStatus) -> Decision:
        self.status = replace(self.status, waiting=self.recorded_waits)
        again = self.status != before or bool(self.actions)
        texts = {wait.text: self.kept.texts.get(wait.text) or self._redact(wait.text) for wait in self.waits}
        self.kept.texts = texts
        return Decision(
            status=self.status,
            actions=tuple(self.actions),
            events=tuple(replace(event, message=self._redact(event.message)) for event in self.events),
            waits=tuple(
                wait if (text := texts[wait.text]) == wait.text else replace(wait, text=text) for wait in self.waits
            ),
            recheck=RECHECK if self.waits else None,
            again=again,
            passes=self.passes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """The result of one action; `problem` is why it was not carried out."""

    action: Action
    problem: str | None = None


def recorded(status: PlanStatus, decision: Decision, outcomes: Iterable[ActionResult], now: datetime) -> PlanStatus:
    """`status` is what was written before the actions of this decision."""
    done = [outcome.action for outcome in outcomes if outcome.problem is None]
    status = _with_applied(status, decision, done)
    return _with_settled(status, done, now)


def _with_applied(status: PlanStatus, decision: Decision, done: list[Action]) -> PlanStatus:
    acting = {key for action in decision.actions if (key := _step(action)) is not None}
    failed = {key for action in decision.actions if action not in done and (key := _step(action)) is not None}
    for key in sorted(acting - failed, key=str):
        record = status.record(key)
        if record and record.state is StepState.STARTED:
            status = status.with_record(key, replace(record, state=StepState.APPLIED))
    return status


def _with_settled(status: PlanStatus, done: list[Action], now: datetime) -> PlanStatus:
    """Marks loans as returned; those of a node's steps are dropped, to keep the status small."""
    over = [loan for action in done if isinstance(action, Return) for loan in action.settled]
    if not over:
        return status
    loans = settle(status.loans, over, time_text(now))
    return replace(status, loans=tuple(loan for loan in loans if not (loan.returned and "/" in loan.step)))


def _step(action: Action) -> StepKey | None:
    return action.step if isinstance(action, (Apply, Borrow)) else None
