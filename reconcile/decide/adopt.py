"""Takes over a plan that another manager has begun: its status has phases and node states, and no record of steps.

What a later step has demonstrably begun, the earlier ones of its phase must have done. A node whose state is one that a
step completes with has done that step, and the answers that follow it: those are repeated if they are asked for. One
whose state says that a step is active has begun that step: it is carried on, not begun again. What the other manager
has borrowed goes on loan to us, as far as its bookkeeping tells the originals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from reconcile.borrow.loan import Loan, Original
from reconcile.decide.giving import loan_step
from reconcile.status.plan import PlanStatus, key_of
from reconcile.status.record import StepRecord, StepState
from reconcile.status.times import time_text
from renderer.model.phase import Borrowed, Occasion, Position
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
    long_done = [item for earlier in rendered.phases[:place] for item in earlier.steps if _counts(item)]
    now_done, under_way = _of_phase(status, phase)
    for item in (item for item in phase.steps if _has_failed(status, item)):
        said = status.node_states[str(item.step.node)].get("message") or _FAILED
        failed = StepRecord(state=StepState.FAILED, started=now, ended=now, message=said)
        status = status.with_record(key_of(item), failed)
    for item in (*(item for item in long_done if item.undo), *now_done):
        done = StepRecord(state=StepState.COMPLETED, started=now, ended=now, message=_ADOPTED, captured=_assumed(item))
        status = status.with_record(key_of(item), done)
    for item in under_way:
        begun = StepRecord(state=StepState.STARTED, started=now, captured=_assumed(item))
        status = status.with_record(key_of(item), begun)
    lasting = (loan for item in (*long_done, *now_done) for loan in _inherited(item, time_text(now), done=True))
    passing = (loan for item in under_way for loan in _inherited(item, time_text(now)))
    return replace(status, loans=(*status.loans, *lasting, *passing))


def _inherited(item: RenderedStep, taken: str, *, done: bool = False) -> Iterator[Loan]:
    """What a step had borrowed. One that is done has given back what goes back then."""
    for manifest in item.manifests:
        spec = manifest.spec
        if not isinstance(spec, Borrowed) or (done and Occasion.COMPLETED in dict(spec.returns)):
            continue
        for found in spec.inherits:
            original = Original(path=found.path, value=found.value)
            yield Loan(phase=item.phase, step=loan_step(item), ref=manifest.ref, original=original, taken=taken)


def _assumed(item: RenderedStep) -> dict[str, Any]:
    return {capture.name: capture.inherits.value for capture in item.step.captures if capture.inherits}


def _has_failed(status: PlanStatus, item: RenderedStep) -> bool:
    states = item.step.node_states
    failed = states.failed if states and _counts(item) else None
    return failed is not None and failed == _state(status, str(item.step.node))


def _state(status: PlanStatus, node: str) -> str | None:
    return (status.node_states.get(node) or {}).get("state")


def _counts(item: RenderedStep) -> bool:
    return item.skipped is None and not item.pending


def _of_phase(status: PlanStatus, phase: RenderedPhase) -> tuple[list[RenderedStep], list[RenderedStep]]:
    """The steps of the current phase that are done, and those under way."""
    by_node: dict[str, list[RenderedStep]] = {}
    for item in phase.steps:
        if item.step.node and item.step.position is Position.DURING:
            by_node.setdefault(item.step.node, []).append(item)
    nodes = [_on_node(status, node, steps) for node, steps in by_node.items()]
    done = {key_of(item) for found, _ in nodes for item in found}
    under_way = [item for _, found in nodes for item in found]
    begun = bool(done or under_way)
    counted = [item for item in phase.steps if _counts(item)]
    now_done = [item for item in counted if key_of(item) in done or _was_done(status, phase, item, begun)]
    over = {key_of(item) for item in now_done}
    return now_done, [item for item in under_way if key_of(item) not in over]


def _was_done(status: PlanStatus, phase: RenderedPhase, item: RenderedStep, nodes_have_begun: bool) -> bool:
    """Whether a step was, as far as the plan as a whole tells."""
    if status.phase == phase.phase.completed:
        return item.step.position is not Position.LEAVE
    if item.step.position is not Position.DURING:
        return item.step.position is Position.ENTER
    if any(capture.record and status.field(capture.record) is not None for capture in item.step.captures):
        return True  # what it captured stands in the API's status: `provisionGeneration` says that it was written
    return item.step.node is None and nodes_have_begun


def _on_node(
    status: PlanStatus, node: str, steps: Sequence[RenderedStep]
) -> tuple[Sequence[RenderedStep], Sequence[RenderedStep]]:
    """The node's steps that are done, and the one under way.

    Done are those up to the one that completes with the node's state and the answers right behind that, or those before
    the one that the state says is active. A step of which nobody knows what it has captured begins anew: what it has
    made is found, and not made twice.
    """
    state = _state(status, node)
    for place, item in enumerate(steps):
        if _has_failed(status, item):
            return steps[:place], ()
    for place in reversed(range(len(steps))):
        states = steps[place].step.node_states
        if state is None or states is None or not _counts(steps[place]):
            continue
        if states.completed == state:
            return steps[: _behind_answers(steps, place + 1)], ()
        if states.active == state:
            return _known(steps, place)
    return (), ()


def _behind_answers(steps: Sequence[RenderedStep], place: int) -> int:
    while place < len(steps) and steps[place].step.repeat:
        place += 1
    return place


def _known(steps: Sequence[RenderedStep], place: int) -> tuple[Sequence[RenderedStep], Sequence[RenderedStep]]:
    """The steps before the one at `place`, and that one, up to the first that has captured what nobody knows."""
    for earlier, item in enumerate(steps[: place + 1]):
        if _counts(item) and any(capture.inherits is None for capture in item.step.captures):
            return steps[:earlier], ()
    return steps[:place], steps[place : place + 1]
