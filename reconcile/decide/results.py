"""What the status says once the writes of a round were made: a step is Applied when all of its own were."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from reconcile.borrow.loan import settle
from reconcile.decide.decision import Action, Apply, Borrow, Decision, Return
from reconcile.status.plan import PlanStatus, StepKey
from reconcile.status.record import StepState
from reconcile.status.times import time_text


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """Whether one action was carried out; `problem` is why not."""

    action: Action
    problem: str | None = None


def recorded(status: PlanStatus, decision: Decision, outcomes: Iterable[ActionResult], now: datetime) -> PlanStatus:
    """`status` is what was written before the actions of this decision."""
    done = [outcome.action for outcome in outcomes if outcome.problem is None]
    status = _with_applied(status, decision, done)
    return _with_settled(status, done, now)


def _with_applied(status: PlanStatus, decision: Decision, done: list[Action]) -> PlanStatus:
    wanted = {key for action in decision.actions if (key := _step(action)) is not None}
    failed = {key for action in decision.actions if action not in done and (key := _step(action)) is not None}
    for key in sorted(wanted - failed, key=str):
        record = status.record(key)
        if record and record.state is StepState.STARTED:
            status = status.with_record(key, replace(record, state=StepState.APPLIED))
    return status


def _with_settled(status: PlanStatus, done: list[Action], now: datetime) -> PlanStatus:
    """Loans that are over; one of a node's own step is dropped, so that a thousand nodes fit."""
    over = [loan for action in done if isinstance(action, Return) for loan in action.settled]
    if not over:
        return status
    loans = settle(status.loans, over, time_text(now))
    return replace(status, loans=tuple(loan for loan in loans if not (loan.returned and "/" in loan.step)))


def _step(action: Action) -> StepKey | None:
    return action.step if isinstance(action, (Apply, Borrow)) else None
