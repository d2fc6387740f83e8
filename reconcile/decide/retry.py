"""Retries the steps that have failed: the one step back of a plan.

A plan that has ended as Failed goes back to the phase value that it had, a node to the active state of its step. What
has failed is an attempt from then on: its record and its objects are kept, and nothing waits for them. What the
failure has returned or undone is done once more first, and a field goes back to its first original in the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from reconcile.borrow.loan import loan_step
from reconcile.decide.builder import DecisionBuilder, WaitRequest
from reconcile.decide.plan_conditions import set_progressing
from reconcile.decide.probing import refs_by_template
from reconcile.decide.step import advance
from reconcile.decide.step_run import Progress
from reconcile.decide.takeover import adopt, reached_value
from reconcile.status.attempt import is_number, is_taken_back, last_attempt, unanswered_retry, with_answer
from reconcile.status.plan import FAILED, PlanStatus, key_of
from renderer.errors import in_a_line
from renderer.model.manifest_spec import Borrowed, Occasion, Owned
from renderer.model.phase import Position
from renderer.model.ref import Ref
from renderer.model.rendered import RenderedPhase, RenderedStep

RETRIED, REFUSED = "UpgradeRetried", "RetryRefused"
_RUNS_ONCE = (("batch/v1", "Job"), ("upgrade.cattle.io/v1", "Plan"))
"""The kinds of what is run; no later step needs that it is still there."""


def answer_retry(builder: DecisionBuilder) -> bool:
    """Carries out a retry that is requested for a plan that has ended, or reports why not. Returns whether one was
    requested."""
    text = unanswered_retry(builder.observation.plan, builder.status)
    if not text:
        return False
    if (unknown := builder.observation.others.lookup_error) is not None:
        builder.ask(WaitRequest(text=unknown, since=builder.waiting_since("other upgrades"), unknown=True))
        return True
    adopt(builder)
    refused = refusal(builder, text)
    if refused:
        _refuse(builder, text, refused)
    else:
        _retry(builder, text)
    return True


def note_retry(builder: DecisionBuilder) -> None:
    """Records the attempt that is requested for a running plan: its names are used from now on."""
    text = unanswered_retry(builder.observation.plan, builder.status)
    if not text:
        return
    if wrong := _wrong_number(builder, text):
        _refuse(builder, text, wrong)
    else:
        builder.status = with_answer(builder.status, text, builder.now)


def refusal(builder: DecisionBuilder, text: str) -> str:
    """The reason why a plan that has ended is not retried; empty if it is."""
    status, others = builder.status, builder.observation.others
    if wrong := _wrong_number(builder, text):
        return wrong
    if status.phase != FAILED:
        return f"the plan has not failed: it is {status.phase}"
    if is_taken_back(builder.observation.plan):
        return "the plan was taken back; create a new plan with the same target"
    if others.rival is not None:
        return others.rival
    if problems := builder.observation.rendered.problems:
        return f"the plan cannot be rendered: {in_a_line(problems)}"
    if (phase := phase_of(status, builder.observation.rendered.phases)) is None:
        return "it is not known in which phase the plan has failed; create a new plan with the same target"
    if phase.phase.no_retry is not None:
        return f"{phase.phase.name} is not retried: {phase.phase.no_retry}"
    if gone := next(_gone(builder, phase), None):
        return f"{gone} is gone, and the rest of the upgrade needs it; create a new plan with the same target"
    return ""


def phase_of(status: PlanStatus, phases: Sequence[RenderedPhase]) -> RenderedPhase | None:
    """The phase in which the plan is, or of a step that has failed; without one, the phase that it had reached."""
    failed = [phase for phase in phases if any(record.failed for _, record in status.records_of(phase.phase.name))]
    value = reached_value(status, phases)
    at = (phase for phase in phases if value in (phase.phase.active, phase.phase.completed))
    return next(iter(failed), None) or next(at, None)


def catch_up(builder: DecisionBuilder, phases: Sequence[RenderedPhase], position: Position) -> Progress:
    """Carries out again what a retry has taken back of these phases; of the last one, what comes before `position`."""
    if not builder.status.attempts:
        return Progress.DONE
    *before, last = phases
    earlier = [item for phase in before for item in phase.steps]
    own = [item for item in last.steps if _comes_before(item.step.position, position)]
    for item in (*earlier, *own):
        if not builder.status.attempts_of(key_of(item)) or builder.status.is_over(key_of(item)):
            continue
        if (progress := advance(builder, item)) is not Progress.DONE:
            return progress
    return Progress.DONE


def _comes_before(one: Position, other: Position) -> bool:
    order = list(Position)
    return order.index(one) < order.index(other)


def _wrong_number(builder: DecisionBuilder, text: str) -> str:
    if not is_number(text):
        return f"{text!r} is not the number of an attempt"
    last = last_attempt(builder.status)
    return f"{text} is not above {last}, the last attempt" if int(text) <= last else ""


def _refuse(builder: DecisionBuilder, text: str, why: str) -> None:
    builder.status = with_answer(builder.status, text, builder.now, why)
    builder.event("Warning", REFUSED, f"retry {text} is refused: {why}")


def _retry(builder: DecisionBuilder, text: str) -> None:
    phases = builder.observation.rendered.phases
    steps = [item for phase in phases for item in phase.steps]
    failed = [item for item in steps if _has_failed(builder, item)]
    value = _value_of(phases, failed[0]) if failed else reached_value(builder.status, phases)
    for item in failed:
        _try_again(builder, item)
    for item in steps:
        if item not in failed and (_was_undone(builder, item) or _was_returned(builder, item)):
            _take_back(builder, item)
    builder.status = with_answer(builder.status, text, builder.now)
    if value:
        builder.enter(value)
    else:  # it had not entered its first phase
        builder.status = replace(builder.status, phase="")
    named = ", ".join(item.id for item in failed) or value or "the plan"
    builder.event("Normal", RETRIED, f"Retry {text} of {named}")
    builder.condition("Available", "True", "Executable")
    set_progressing(builder)


def _value_of(phases: Sequence[RenderedPhase], item: RenderedStep) -> str:
    """The phase value at which the step runs; empty before the first phase was entered."""
    place = next(place for place, found in enumerate(phases) if found.phase.name == item.phase)
    phase = phases[place].phase
    if item.step.position is Position.ENTER:
        return phases[place - 1].phase.completed if place else ""
    return phase.active if item.step.position is Position.DURING else phase.completed


def _has_failed(builder: DecisionBuilder, item: RenderedStep) -> bool:
    record = builder.status.record(key_of(item))
    return record is not None and record.failed


def _try_again(builder: DecisionBuilder, item: RenderedStep) -> None:
    """The node takes the active state of its step, and what the step has recorded is recorded once more."""
    builder.status = builder.status.with_another_attempt(key_of(item))
    for path, _ in item.step.records:
        builder.status = builder.status.with_field(path, None)
    if item.step.node and item.step.node_states and item.step.node_states.active:
        builder.status = builder.status.reset_node(item.step.node, item.step.node_states.active)
    if (jobs := item.step.job_states) is not None and jobs.states.active and jobs.states.failed:
        failed = [
            name for name, entry in builder.status.node_states.items() if entry.get("state") == jobs.states.failed
        ]
        for name in failed:
            builder.status = builder.status.reset_node(name, jobs.states.active)


def _was_undone(builder: DecisionBuilder, item: RenderedStep) -> bool:
    undo = item.undo
    return undo is not None and builder.status.has_begun(key_of(undo)) and builder.status.has_completed(key_of(item))


def _was_returned(builder: DecisionBuilder, item: RenderedStep) -> bool:
    """True if the failure has returned what the step had borrowed."""
    record = builder.status.record(key_of(item))
    if record is None or not record.made_its_objects:
        return False
    occasions = [{when for when, _ in spec.returns} for spec in item.step.manifests if isinstance(spec, Borrowed)]
    returned = [Occasion.FAILURE in on and not (record.is_over and Occasion.COMPLETED in on) for on in occasions]
    return any(returned)


def _take_back(builder: DecisionBuilder, item: RenderedStep) -> None:
    """The step begins once more. Its loans are open again, so that what it writes then has the first originals."""
    for each in (item, item.undo):
        if each is not None and builder.status.record(key_of(each)) is not None:
            builder.status = builder.status.with_another_attempt(key_of(each))
    phase, step = item.phase, loan_step(item)
    loans = (
        replace(loan, returned=None) if (loan.phase, loan.step) == (phase, step) else loan
        for loan in builder.status.loans
    )
    builder.status = builder.status.with_loans(loans)


def _gone(builder: DecisionBuilder, failed: RenderedPhase) -> Iterator[Ref]:
    """Objects of completed phases that are not there, that nobody restores, and that later phases rely on."""
    phases = builder.observation.rendered.phases
    for item in (item for phase in phases[: phases.index(failed)] for item in phase.steps if item.skipped is None):
        refs = refs_by_template(item, builder.status.record(key_of(item)))
        lasting = [m.spec for m in item.manifests if isinstance(m.spec, Owned) and not m.spec.maintained]
        for ref in dict.fromkeys(ref for spec in lasting if item.step.gates for ref in refs[spec.file]):
            if (ref.api_version, ref.kind) not in _RUNS_ONCE and builder.observation.look.get(ref) is None:
                yield ref
