"""Takes over a plan that another manager has begun: its status has phases and node states, and no record of steps.

What a later step has demonstrably begun, the earlier ones of its phase must have done. A node whose state is one that a
step completes with has done that step, and the answers that follow it: those are repeated if they are asked for. One
whose state says that a step is active has begun that step: it is carried on, not begun again. What the other manager
has borrowed goes on loan to us, as far as its bookkeeping has the originals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from reconcile.borrow.loan import Loan, Original, loan_step
from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.captures import read_captures
from reconcile.decide.owned import created, existing, made_before
from reconcile.decide.probing import is_asked_again
from reconcile.decide.writes import evident, remember
from reconcile.probes.look import ReadFailure
from reconcile.status.plan import FAILED, PlanStatus, key_of
from reconcile.status.record import StepRecord, StepState
from reconcile.status.times import time_of, time_text
from renderer.model.manifest_spec import Borrowed, Occasion, Owned
from renderer.model.path import look_up
from renderer.model.phase import Position
from renderer.model.rendered import RenderedPhase, RenderedStep

_ADOPTED = "completed before this manager took over"
_FAILED = "failed before this manager took over"


def adopt(builder: DecisionBuilder) -> None:
    """Records what was done already, unless the status has records or nothing has started."""
    status, phases = builder.status, builder.observation.rendered.phases
    if not status.phase or status.records or status.done or status.skipped:
        return
    reached = reached_value(status, phases)
    place = next((i for i, p in enumerate(phases) if reached in (p.phase.active, p.phase.completed)), None)
    if place is None:
        if status.phase == FAILED:  # how far it came is not known, but what it prepared is still returned
            _take_over_preparations(builder, phases)
        return
    builder.taken_over = True
    long_done = [item for earlier in phases[:place] for item in earlier.steps if _counts(item)]
    now_done, under_way = _of_phase(builder, phases[place], reached)
    for item in (item for item in phases[place].steps if _has_failed(status, item)):
        said = status.node_states[str(item.step.node)].get("message") or _FAILED
        builder.record(
            key_of(item), StepRecord(state=StepState.FAILED, started=builder.now, ended=builder.now, message=said)
        )
    made = {key_of(item): made_before(builder, item) for item in (*long_done, *now_done) if item.step.node is None}
    kept = [item for item in long_done if item.undo or _is_maintained(item) or made.get(key_of(item))]
    for item in (*kept, *now_done):
        builder.record(key_of(item), replace(_done(builder, item), objects=made.get(key_of(item), ())))
    taken = time_text(builder.now)
    loans = [loan for item in (*long_done, *now_done) for loan in _inherited(item, taken, done=True)]
    if status.phase == reached:
        for item in under_way:
            _go_on_with(builder, item, phases[place])
        loans += [loan for item in under_way for loan in _inherited(item, taken)]
    known = [(loan.ref, loan.original.path) for loan in status.loans]  # recorded when a phase was applied by hand
    new = [loan for loan in loans if (loan.ref, loan.original.path) not in known]
    builder.status = builder.status.with_loans((*status.loans, *new))
    _take_over_preparations(builder, phases[place + 1 : place + 2])


def _take_over_preparations(builder: DecisionBuilder, upcoming: Sequence[RenderedPhase]) -> None:
    """Records what was borrowed before the next phase was entered: the other manager records the phase afterwards."""
    for item in (item for phase in upcoming for item in phase.steps if item.step.position is Position.ENTER):
        for manifest in item.manifests:
            if not isinstance(manifest.spec, Borrowed):
                continue
            live = builder.observation.look.get(manifest.ref)
            if live is not None and not isinstance(live, ReadFailure):
                remember(builder, item, manifest, evident(builder, manifest, manifest.spec, live))


def reached_value(status: PlanStatus, phases: Sequence[RenderedPhase]) -> str:
    """The phase value that the plan reached: for a failed plan the last known one in its history."""
    known = {value for phase in phases for value in (phase.phase.active, phase.phase.completed)}
    if status.phase in known:
        return status.phase
    history = [entry["phase"] for entry in status.rest.get("phaseTransitionTimestamps") or ()]
    return next((value for value in reversed(history) if value in known), "") if status.phase == FAILED else ""


def _done(builder: DecisionBuilder, item: RenderedStep) -> StepRecord:
    """A record with captured values, which later steps use."""
    read = read_captures(builder, item, done=True) if item.step.node else {}
    captured = read if isinstance(read, dict) else {}
    now = builder.now
    return StepRecord(state=StepState.COMPLETED, started=now, ended=now, message=_ADOPTED, captured=captured)


def _go_on_with(builder: DecisionBuilder, item: RenderedStep, phase: RenderedPhase) -> None:
    """Records the step as started, so that it is not held. If its values cannot be read now, it starts as usual."""
    read = read_captures(builder, item, done=False)
    if isinstance(read, dict):
        began = created(builder, item) or _last_end(builder, item, phase) or builder.now
        builder.record(key_of(item), StepRecord(state=StepState.STARTED, started=began, captured=read))


def _last_end(builder: DecisionBuilder, item: RenderedStep, phase: RenderedPhase) -> datetime | None:
    """The time when the last Job was completed that an earlier step has made for the same node."""
    own = [other for other in phase.steps if other.step.node == item.step.node]
    made = [body for other in own[: own.index(item)] for body in existing(builder, other)]
    ends = [look_up(body, ("status", "completionTime")) for body in made]
    return max((time_of(end) for end in ends if isinstance(end, str)), default=None)


def _is_maintained(item: RenderedStep) -> bool:
    return any(isinstance(manifest.spec, Owned) and manifest.spec.maintained for manifest in item.manifests)


def _inherited(item: RenderedStep, taken: str, *, done: bool = False) -> Iterator[Loan]:
    """The loans of a step; a completed one has returned what is due on completion."""
    for manifest in item.manifests:
        spec = manifest.spec
        if not isinstance(spec, Borrowed) or (done and Occasion.COMPLETED in dict(spec.returns)):
            continue
        for found in spec.originals_on_take_over:
            original = Original(path=found.path, value=found.value)
            yield Loan(phase=item.phase, step=loan_step(item), ref=manifest.ref, original=original, taken=taken)


def _has_failed(status: PlanStatus, item: RenderedStep) -> bool:
    states = item.step.node_states
    failed = states.failed if states and _counts(item) else None
    return failed is not None and failed == _state(status, str(item.step.node))


def _state(status: PlanStatus, node: str) -> str | None:
    return (status.node_states.get(node) or {}).get("state")


def _counts(item: RenderedStep) -> bool:
    return item.skipped is None and not item.pending


def _of_phase(
    builder: DecisionBuilder, phase: RenderedPhase, reached: str
) -> tuple[list[RenderedStep], list[RenderedStep]]:
    """The steps of the current phase that are done, and those under way."""
    by_node: dict[str, list[RenderedStep]] = {}
    for item in phase.steps:
        if item.step.node and item.step.position is Position.DURING:
            by_node.setdefault(item.step.node, []).append(item)
    nodes = [_on_node(builder, node, steps) for node, steps in by_node.items()]
    done = {key_of(item) for found, _ in nodes for item in found}
    under_way = [item for _, found in nodes for item in found]
    begun = bool(done or under_way)
    counted = [item for item in phase.steps if _counts(item)]
    now_done = [
        item for item in counted if key_of(item) in done or _was_done(builder.status, phase, item, reached, begun)
    ]
    over = {key_of(item) for item in now_done}
    return now_done, [item for item in under_way if key_of(item) not in over]


def _was_done(
    status: PlanStatus, phase: RenderedPhase, item: RenderedStep, reached: str, nodes_have_begun: bool
) -> bool:
    """True if a step was done, judged by the plan as a whole."""
    if reached == phase.phase.completed:
        return item.step.position is not Position.LEAVE
    if item.step.position is not Position.DURING:
        return item.step.position is Position.ENTER
    if any(capture.record and status.field(capture.record) is not None for capture in item.step.captures):
        return True  # what it captured stands in the API's status: `provisionGeneration` says that it was written
    return item.step.node is None and nodes_have_begun


def _on_node(
    builder: DecisionBuilder, node: str, steps: Sequence[RenderedStep]
) -> tuple[Sequence[RenderedStep], Sequence[RenderedStep]]:
    """The node's steps that are done, and the one under way.

    Done are those up to the one that completes with the node's state, with the answers right behind that but those that
    are still owed; or those before the one that the state says is active.
    """
    state = _state(builder.status, node)
    for place, item in enumerate(steps):
        if _has_failed(builder.status, item):
            return steps[:place], ()
    for place in reversed(range(len(steps))):
        states = steps[place].step.node_states
        if state is None or states is None or not _counts(steps[place]):
            continue
        if states.completed == state:
            return steps[: _behind_answers(builder, steps, place + 1)], ()
        if states.active == state:
            return steps[:place], steps[place : place + 1]
    return (), ()


def _behind_answers(builder: DecisionBuilder, steps: Sequence[RenderedStep], place: int) -> int:
    while place < len(steps) and steps[place].step.repeat and not is_asked_again(builder, steps[place]):
        place += 1
    return place
