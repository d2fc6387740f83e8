"""The result of a decision: the status to record, the writes to make, the events to emit, and what is waited for.

`recorded` is the status once the writes were made.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from reconcile.borrow.fields import Patch
from reconcile.borrow.loan import Loan, settle
from reconcile.status.plan import PlanStatus, StepKey
from reconcile.status.record import StepState
from reconcile.status.times import time_text
from renderer.model.path import Path
from renderer.model.probe import Event
from renderer.model.ref import Ref
from renderer.model.rendered import Manifest


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
    def step_of_phase(self) -> str:
        """`NodeUpgrade/PreDrain` of `NodeUpgrade/PreDrain/n1`."""
        return self.step.removesuffix(f"/{self.node}") if self.node else self.step

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
