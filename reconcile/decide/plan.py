"""Decides what to do about a plan now: start, continue, wait its turn, fail, end, or be taken back.

Every phase value is recorded in a round of its own, so that watchers see each of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconcile.decide.again import end_rounds, look_again
from reconcile.decide.builder import LONG_TO_READ, DecisionBuilder, WaitRequest
from reconcile.decide.decision import Apply, Decision
from reconcile.decide.decision_cache import DecisionCache
from reconcile.decide.ending import set_finalizer
from reconcile.decide.held import blocked, held_as_latched, held_as_unsupported, is_latched, unsupported
from reconcile.decide.observation import Observation
from reconcile.decide.other_templates import are_others, note_templates
from reconcile.decide.phase import fold_finished, repeat, run, unless_unchanged
from reconcile.decide.plan_conditions import set_degraded, set_progressing
from reconcile.decide.plan_end import abort, announce_completed, fail, finish, finish_failed, tidy
from reconcile.decide.probing import is_reconsidered, is_started
from reconcile.decide.retry import answer_retry, catch_up, note_retry
from reconcile.decide.step_run import Progress
from reconcile.decide.takeover import adopt
from reconcile.decide.writes import changed_by_others
from reconcile.objects import deletion_timestamp
from reconcile.status.plan import FAILED, TERMINAL, PlanStatus, key_of
from reconcile.status.plan_body import status_of
from renderer.errors import in_a_line
from renderer.model.manifest_spec import Owned
from renderer.model.phase import Deletion, Position
from renderer.model.rendered import RenderedPhase
from renderer.render.seal import PENDING


def decide(observation: Observation, cache: DecisionCache | None = None) -> Decision:
    """Makes the decision, the same with `cache` and without. Raises `KeyError` or `ValueError` for a status that we
    cannot have written."""
    before = status_of(observation.plan)
    builder = DecisionBuilder(observation, before, cache)
    if deletion_timestamp(observation.plan):
        abort(builder)
    elif is_over(before):
        if not answer_retry(builder):
            tidy(builder)
    elif observation.others.lookup_error is not None and not before.phase:
        since = builder.waiting_since("other upgrades")
        text = observation.others.lookup_error
        builder.ask(WaitRequest(text=text, since=since, limit=LONG_TO_READ, unknown=True))
        set_degraded(builder)
    elif observation.others.blocker is not None:
        blocked(builder, observation.others.blocker)
    elif is_latched(observation, before):
        held_as_latched(builder)
    elif (reason := unsupported(observation)) is not None and before.phase != FAILED:
        held_as_unsupported(builder, reason)
    elif before.phase == FAILED:
        finish_failed(builder)
    else:
        _go_on(builder)
    fold_finished(builder)
    builder.cache.timed = tuple(builder.timed)
    return builder.decision(before)


def is_over(status: PlanStatus) -> bool:
    """True if the plan has ended for good."""
    progressing = status.condition("Progressing")
    return status.phase in TERMINAL and progressing is not None and progressing["status"] == "False"


# ------------------------------------------------------------------------------------------------------ on the way


def _go_on(builder: DecisionBuilder) -> None:
    if (completed := _completed_by_another(builder)) is not None:
        builder.enter(completed)
        set_progressing(builder)
        return
    if not builder.observation.rendered.problems:
        adopt(builder)
    phases = builder.observation.rendered.phases
    phase = builder.status.phase
    set_finalizer(builder, present=True)
    note_retry(builder)
    if not phase:
        _enter_next(builder, -1)
        if builder.status.phase:
            note_templates(builder)
        set_progressing(builder)
        return
    place = next((i for i, p in enumerate(phases) if phase in (p.phase.active, p.phase.completed)), None)
    if place is None:
        message = f"unknown phase: {phase}"
        if (builder.status.condition("Degraded") or {}).get("message") != message:
            builder.event("Warning", "ReconcileError", f"Pipeline error: {message}")
        builder.condition("Degraded", "True", "ReconcileError", message)
        remedy = "run with the templates that the plan was started with (--templates), or abort the plan"
        text = f"{message}: no template defines it; {remedy}"
        builder.wait_for_operator(text)
        return
    builder.condition("Available", "True", "Executable")
    note_templates(builder)
    _mind_problems(builder)
    _mind_the_other(builder, phases[place])
    late = _reconsider(builder, phases[: place + (phase == phases[place].phase.completed)])
    if not _has_caught_up(builder, phases[: place + 1]):
        return
    if phase == phases[place].phase.active:
        _during(builder, phases[place])
    elif late and place + 1 == len(phases):  # it starts before the plan ends
        set_progressing(builder)
    else:
        _after(builder, place)


def _completed_by_another(builder: DecisionBuilder) -> str | None:
    """Our value of a phase that another manager has completed, where the plan has one of its own for that."""
    phases = (item.phase for item in builder.observation.rendered.phases)
    return next((phase.completed for phase in phases if builder.status.phase in phase.also_completed), None)


def _has_caught_up(builder: DecisionBuilder, phases: Sequence[RenderedPhase]) -> bool:
    """True if what a retry takes up of earlier steps is done."""
    *_, now = phases
    position = Position.DURING if builder.status.phase == now.phase.active else Position.LEAVE
    progress = catch_up(builder, phases, position)
    if progress is Progress.FAILED:
        fail(builder, now)
    elif progress is Progress.BUSY:
        set_progressing(builder)
    return progress is Progress.DONE


def _during(builder: DecisionBuilder, phase: RenderedPhase) -> None:
    if not _is_approved(builder, phase):
        builder.closed.add(phase.phase.name)
    _maintain(builder)
    place = len(builder.waits)
    progress = run(builder, phase, Position.DURING)
    builder.waits[place:place] = changed_by_others(builder, phase)
    if progress is Progress.FAILED:
        fail(builder, phase)
        return
    if progress is Progress.DONE:
        builder.enter(phase.phase.completed)
    set_progressing(builder)


def _after(builder: DecisionBuilder, place: int) -> None:
    rendered = builder.observation.rendered
    phase, may_begin = rendered.phases[place], not rendered.problems
    asked = repeat(builder, phase)
    progress = run(builder, phase, Position.LEAVE) if asked is Progress.DONE else asked
    if progress is Progress.BUSY:
        progress = look_again(builder, phase)
    if progress is Progress.FAILED:
        fail(builder, phase)
    elif progress is Progress.DONE and may_begin and place + 1 == len(rendered.phases):
        finish(builder, phase)
    else:
        _maintain(builder)
        if progress is Progress.DONE and may_begin and not _is_kept(builder, phase):
            end_rounds(builder, phase)
            _enter_next(builder, place)
        set_progressing(builder)


def _reconsider(builder: DecisionBuilder, phases: Sequence[RenderedPhase]) -> bool:
    """Starts what was skipped in a phase that is completed, and is not to be skipped any more. Returns whether some of
    it is under way."""
    reached: list[Progress] = []
    for phase in phases:
        steps = builder.cache.steps_of(phase).reconsidered
        due = [item for item in steps if is_reconsidered(builder.status, item) or is_started(builder.status, item)]
        if due and _is_approved(builder, phase):
            reached += unless_unchanged(builder, phase.phase.name, due)
    return Progress.BUSY in reached


def _mind_problems(builder: DecisionBuilder) -> None:
    """Lets no step begin where some cannot be rendered; those that have begun are watched."""
    problems = builder.observation.rendered.problems
    if not problems:
        return
    builder.closed |= {phase.phase.name for phase in builder.observation.rendered.phases}
    message = builder.observation.redactor.text(in_a_line(problems))
    builder.wait_for_operator(f"the plan cannot be rendered, so no step begins: {message}")
    builder.errors = [message, *(text for text in builder.errors if message not in text)]
    if message not in (builder.status.condition("Degraded") or {}).get("message", ""):
        builder.event("Warning", "ReconcileError", f"Pipeline error: {message}")


def _mind_the_other(builder: DecisionBuilder, phase: RenderedPhase) -> None:
    """Reports a built-in Upgrade that was started while this plan runs: the operator has to delete one of the two."""
    if builder.observation.others.beside is None:
        return
    text = f'the built-in upgrade "{builder.observation.others.beside}" is running as well'
    if _is_kept(builder, phase):
        remedy = "this plan does not enter its next phase: delete one of the two"
    else:
        remedy = "this plan continues, because the cluster is half upgraded: delete the built-in upgrade"
    builder.wait_for_operator(f"{text}; {remedy}", since=builder.waiting_since(text))
    if text not in (builder.status.condition("Degraded") or {}).get("message", ""):
        builder.event("Warning", "ConcurrentUpgrade", text)


def _is_kept(builder: DecisionBuilder, phase: RenderedPhase) -> bool:
    """True if the plan stops after this phase: while it can still be deleted without harm."""
    return builder.observation.others.beside is not None and phase.phase.deletion is not Deletion.FORBIDDEN


def _enter_next(builder: DecisionBuilder, place: int) -> None:
    """The steps before the next phase, and its active value once they are done."""
    phases = builder.observation.rendered.phases
    upcoming = phases[place + 1]
    if not _is_approved(builder, upcoming) or (place >= 0 and are_others(builder, phases[place], upcoming)):
        return
    progress = run(builder, upcoming, Position.ENTER)
    if progress is Progress.FAILED:
        fail(builder, upcoming)
    elif progress is Progress.DONE:
        if place >= 0:
            announce_completed(builder, phases[place])
        builder.enter(upcoming.phase.active)
        if upcoming.phase.emit_events:
            builder.event("Normal", "PhaseTransition", f"Entering phase {upcoming.phase.name}")


def _is_approved(builder: DecisionBuilder, phase: RenderedPhase) -> bool:
    """True if the phase is rendered as approved. Without an approval every phase may run; with one, also those that it
    lists as pending."""
    name = phase.phase.name
    if builder.observation.rendered.problems:  # what would be rendered is not known, and nothing begins
        return name not in builder.closed
    approved, sealed = builder.observation.approved.get(name), builder.observation.sealed.get(name)
    if not builder.observation.approved or approved in (PENDING, sealed):
        return True
    named = "; ".join(builder.observation.unapproved.get(name, ())) or "what is pending now"
    digest = f"digest {sealed}, " if sealed else ""
    text = f"phase {name} differs from what was approved in {named} ({digest}approved {approved})"
    if approved is None:
        text = f"phase {name} was not approved"
    builder.wait_for_operator(text, step=name, since=builder.waiting_since(f"{name}: approval"))
    return False


def _maintain(builder: DecisionBuilder) -> None:
    """Restores maintained objects of completed steps that are gone."""
    phases = builder.observation.rendered.phases
    for item in (item for phase in phases for item in builder.cache.steps_of(phase).maintained):
        maintained = [m for m in item.manifests if isinstance(m.spec, Owned) and m.spec.maintained]
        if maintained and builder.status.has_completed(key_of(item)):
            gone = [manifest for manifest in maintained if builder.observation.look.get(manifest.ref) is None]
            builder.actions += [Apply(manifest=manifest, step=None) for manifest in gone]
