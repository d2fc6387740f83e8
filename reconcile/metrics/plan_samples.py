"""Reads the samples of one plan from its last round. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime

from reconcile.decide.decision import Wait
from reconcile.decide.plan import is_over
from reconcile.loop.round import Round
from reconcile.metrics.metric_table import (
    BLOCKING_CHECKS,
    BORROWED,
    CONDITION,
    GATES,
    LAST_PROGRESS,
    NODE_SECONDS,
    NODES,
    PHASE_INFO,
    PHASE_SECONDS,
    RUNNING,
    STEP_INFO,
    STEP_SECONDS,
    WAIT_SECONDS,
    WAITS,
    Sample,
)
from reconcile.status.plan import PlanStatus, key_of
from reconcile.status.plan_body import status_of
from reconcile.status.record import StepState
from reconcile.status.times import time_of
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPhase, RenderedPlan

NOT_STARTED = "NotStarted"
MOST_NODES = 20
"""Nodes that have a time series of their own."""

REASONS: Mapping[str, str] = {
    "Check": "a pre-flight check blocks, or could not be evaluated",
    "Unreadable": "what has to be looked at could not be read",
    "NeedsOperator": "somebody has to act",
    "TakesLong": "it takes longer than its step should",
    "Held": "somebody requested it, for example with pauseNodes, or it is another node's turn",
    "InProgress": "any other",
}
"""The words for waits, of which the first that fits is used."""
VERDICTS: Mapping[str, str] = {
    "passed": "the step has ended",
    "waiting": "not yet",
    "unknown": "what it looks at could not be read",
    "failed": "the step has failed",
}


def plan_samples(done: Round, now: datetime) -> Iterator[Sample]:
    """All samples of a plan; of one that is over only that it is, and how it ended."""
    plan, name = done.plan or {}, done.name
    status = done.decision.status if done.decision else status_of(plan)
    over = is_over(status)
    yield Sample(metric=RUNNING, labels=(name,), value=float(bool(status.phase) and not over))
    spec = plan.get("spec") or {}
    version = str(spec.get("version") or spec.get("image") or "")
    yield Sample(metric=PHASE_INFO, labels=(name, version, status.phase), value=1)
    for item in status.conditions:
        labels = (name, str(item.get("type")), str(item.get("status")), str(item.get("reason")))
        yield Sample(metric=CONDITION, labels=labels, value=1)
    yield Sample(metric=BORROWED, labels=(name,), value=sum(loan.returned is None for loan in status.loans))
    if not over:
        yield from _of_running(done, plan, status, now)


def _of_running(done: Round, plan: Body, status: PlanStatus, now: datetime) -> Iterator[Sample]:
    yield from _phases(done.name, status, now)
    yield from _steps(done.name, status, now)
    yield from _progress(done.name, plan, status)
    yield from _waits(done.name, done.decision.waits if done.decision else (), now)
    if done.rendered is not None:
        yield from _nodes(done.name, done.rendered, status, now)
        yield from _gates(done, done.rendered, status)


def _phases(name: str, status: PlanStatus, now: datetime) -> Iterator[Sample]:
    """Seconds in each value of `currentPhase`, those of repeated ones added up."""
    history = status.rest.get("phaseTransitionTimestamps") or ()
    begins = [time_of(entry["phaseTransitionTimestamp"]) for entry in history]
    spent: Counter[str] = Counter()
    ends = [*begins[1:], now][: len(begins)]  # a plan that was taken over may have no history
    for entry, begin, end in zip(history, begins, ends, strict=True):
        spent[str(entry["phase"])] += int(max(0.0, (end - begin).total_seconds()))
    for phase, seconds in spent.items():
        yield Sample(metric=PHASE_SECONDS, labels=(name, phase), value=seconds)


def _steps(name: str, status: PlanStatus, now: datetime) -> Iterator[Sample]:
    """Steps that fan out have a sample for each state that any node's is in, and the time of the longest."""
    states: dict[tuple[str, str, str], None] = {}
    began: dict[tuple[str, str], datetime] = {}
    for (phase, _), records in status.records.items():
        for step, record in records.items():
            if record.is_over:
                continue
            states[phase, step, str(record.state)] = None
            if not record.failed:
                began[phase, step] = min(record.started, began.get((phase, step), record.started))
    for place in states:
        yield Sample(metric=STEP_INFO, labels=(name, *place), value=1)
    for where, started in began.items():
        yield Sample(metric=STEP_SECONDS, labels=(name, *where), value=_since(started, now))


def _progress(name: str, plan: Body, status: PlanStatus) -> Iterator[Sample]:
    phases = {phase for phase, _ in (*status.records, *status.done)}
    reached = [found for phase in phases if (found := status.last_progress(phase))]
    entered = status.last_transition() or (plan.get("metadata") or {}).get("creationTimestamp")
    moments = [*reached, *([time_of(str(entered))] if entered else [])]
    if moments:
        yield Sample(metric=LAST_PROGRESS, labels=(name,), value=max(moments).timestamp())


def _nodes(name: str, rendered: RenderedPlan, status: PlanStatus, now: datetime) -> Iterator[Sample]:
    counts = Counter(str(entry.get("state") or NOT_STARTED) for entry in status.node_states.values())
    counts[NOT_STARTED] += len(set(rendered.nodes) - set(status.node_states))
    for state in dict.fromkeys((NOT_STARTED, *(row.name for row in rendered.node_states), *counts)):
        yield Sample(metric=NODES, labels=(name, state), value=counts[state])
    away = [
        (moment, node, str(entry["state"]))
        for node, entry in status.node_states.items()
        if rendered.node_states.is_out_of_service(str(entry.get("state"))) and (moment := _last_moved(status, node))
    ]
    for moment, node, state in sorted(away)[:MOST_NODES]:
        yield Sample(metric=NODE_SECONDS, labels=(name, node, state), value=_since(moment, now))


def _last_moved(status: PlanStatus, node: str) -> datetime | None:
    """The time when a step of the node last began or ended."""
    own = [records for (_, name), records in status.records.items() if name == node]
    return max((record.ended or record.started for records in own for record in records.values()), default=None)


def _waits(name: str, waits: tuple[Wait, ...], now: datetime) -> Iterator[Sample]:
    grouped: dict[tuple[str, str], list[Wait]] = {}
    for wait in waits:
        grouped.setdefault((wait.step_of_phase, reason_of(wait)), []).append(wait)
    for labels, found in grouped.items():
        oldest = min((wait.since for wait in found if wait.since), default=now)
        yield Sample(metric=WAITS, labels=(name, *labels), value=len(found))
        yield Sample(metric=WAIT_SECONDS, labels=(name, *labels), value=_since(oldest, now))
    for check in dict.fromkeys(wait.check.id for wait in waits if wait.check):
        yield Sample(metric=BLOCKING_CHECKS, labels=(name, check), value=1)


def reason_of(wait: Wait) -> str:
    """A word for the kind of wait; the first that fits."""
    fits = (
        wait.check is not None,
        wait.unknown,
        wait.slow and wait.limit is None,
        wait.slow,
        wait.limit is None,
        True,
    )
    return next(word for word, holds in zip(REASONS, fits, strict=True) if holds)


def _gates(done: Round, rendered: RenderedPlan, status: PlanStatus) -> Iterator[Sample]:
    """The gates of the phase that the plan is in, as far as their steps have begun."""
    waits = done.decision.waits if done.decision else ()
    open_ = {(wait.step, wait.node): wait.unknown for wait in waits}
    counts: Counter[tuple[str, str]] = Counter()
    for phase in rendered.phases:
        if phase.phase.active == status.phase:
            counts.update(_verdicts(phase, status, open_))
    for labels, count in counts.items():
        yield Sample(metric=GATES, labels=(done.name, *labels), value=count)


def _verdicts(
    phase: RenderedPhase, status: PlanStatus, open_: dict[tuple[str, str | None], bool]
) -> Iterator[tuple[str, str]]:
    """(step, verdict) of each step with gates that has begun and made its objects."""
    for item in phase.steps:
        if not item.step.gates:
            continue
        step, key = f"{item.phase}/{item.step.name}", key_of(item)
        if status.has_completed(key):
            yield step, "passed"
            continue
        record = status.record(key)
        if record is not None and record.failed:
            yield step, "failed"
        elif record is not None and record.state is StepState.APPLIED:
            yield step, "unknown" if open_.get((item.id, item.step.node)) else "waiting"


def _since(moment: datetime, now: datetime) -> float:
    return max(0.0, (now - moment).total_seconds())
