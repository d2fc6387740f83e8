"""Takes over a plan that another manager has begun: its status has phases and node states, and no record of steps.

What a later step has demonstrably begun, the earlier ones of its phase must have done. A node whose state is one that a
step completes with has done that step, and the answers that follow it: those are repeated if they are asked for. What
the other manager has borrowed goes on loan to us, as far as its bookkeeping tells the originals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from reconcile.borrow.loan import Loan, Original
from reconcile.decide.giving import loan_step
from reconcile.status.plan import PlanStatus, key_of
from reconcile.status.record import StepRecord, StepState
from reconcile.status.times import time_text
from renderer.model.phase import Borrowed, Position
from renderer.model.rendered import RenderedPhase, RenderedPlan, RenderedStep

_ADOPTED = "done before this manager took over"
_FAILED = "failed before this manager took over"


def adopt(status: PlanStatus, rendered: RenderedPlan, now: datetime) -> PlanStatus:
    """`status` with records for what was done already; as it is where there are records, or nothing has begun."""
    if not status.phase or status.records or status.done or status.skipped:
        return status
    place = next(
        (i for i, p in enumerate(rendered.phases) if status.phase in (p.phase.active, p.phase.completed)), None
    )
    if place is None:
        return status
    phase = rendered.phases[place]
    now_done = [item for item in phase.steps if _was_done(status, phase, item)]
    long_done = [item for earlier in rendered.phases[:place] for item in earlier.steps if _counts(item)]
    record = StepRecord(state=StepState.COMPLETED, started=now, ended=now, message=_ADOPTED)
    for item in (item for item in phase.steps if _has_failed(status, item)):
        said = status.node_states[str(item.step.node)].get("message") or _FAILED
        failed = StepRecord(state=StepState.FAILED, started=now, ended=now, message=said)
        status = status.with_record(key_of(item), failed)
    for item in (*(item for item in long_done if item.undo), *now_done):
        status = status.with_record(key_of(item), record)
    inherited = [loan for item in (*long_done, *now_done) for loan in _inherited(item, time_text(now))]
    return replace(status, loans=(*status.loans, *inherited))


def _inherited(item: RenderedStep, taken: str) -> Iterator[Loan]:
    for manifest in item.manifests:
        for found in manifest.spec.inherits if isinstance(manifest.spec, Borrowed) else ():
            original = Original(path=found.path, value=found.value)
            yield Loan(phase=item.phase, step=loan_step(item), ref=manifest.ref, original=original, taken=taken)


def _has_failed(status: PlanStatus, item: RenderedStep) -> bool:
    states = item.step.node_states
    failed = states.failed if states and _counts(item) else None
    return failed is not None and failed == _state(status, item)


def _state(status: PlanStatus, item: RenderedStep) -> str | None:
    return (status.node_states.get(str(item.step.node)) or {}).get("state")


def _counts(item: RenderedStep) -> bool:
    return item.skipped is None and not item.pending


def _was_done(status: PlanStatus, phase: RenderedPhase, item: RenderedStep) -> bool:
    if not _counts(item):
        return False
    if status.phase == phase.phase.completed:
        return item.step.position is not Position.LEAVE
    if item.step.position is Position.ENTER:
        return True
    if item.step.position is Position.LEAVE:
        return False
    if any(capture.record and status.field(capture.record) is not None for capture in item.step.captures):
        return True  # what it captured stands in the API's status: `provisionGeneration` says that it was written
    if item.step.node is None:
        return _nodes_have_begun(status, phase)
    return item in _done_on_node(status, [s for s in phase.steps if s.step.node == item.step.node])


def _nodes_have_begun(status: PlanStatus, phase: RenderedPhase) -> bool:
    by_node = {str(item.step.node) for item in phase.steps if item.step.node}
    steps = {node: [item for item in phase.steps if item.step.node == node] for node in by_node}
    return any(_done_on_node(status, items) for items in steps.values())


def _done_on_node(status: PlanStatus, steps: Sequence[RenderedStep]) -> Sequence[RenderedStep]:
    """The node's steps up to the one that completes with its state, and the answers right behind that."""
    state = _state(status, steps[0]) if steps else None
    if failed := [place for place, item in enumerate(steps) if _has_failed(status, item)]:
        return steps[: failed[0]]
    ends = [i for i, item in enumerate(steps) if item.step.node_states and item.step.node_states.completed == state]
    if not state or not ends:
        return ()
    last = ends[-1] + 1
    while last < len(steps) and steps[last].step.repeat:
        last += 1
    return steps[:last]
