"""Decides what to do about a plan now: start, continue, wait its turn, fail, end, or be taken back.

Every phase value is recorded in a round of its own, so that whoever watches sees each of them.
"""

from __future__ import annotations

from reconcile.decide.decision import LONG_TO_READ, Apply, Decision, DecisionBuilder, Wait
from reconcile.decide.ending import end, set_finalizer
from reconcile.decide.kept import Kept
from reconcile.decide.observation import PENDING, Observation
from reconcile.decide.phase import fold_finished, repeat, run
from reconcile.decide.step import Progress
from reconcile.decide.takeover import adopt
from reconcile.decide.writes import changed_by_others
from reconcile.objects import deletion_timestamp
from reconcile.status.plan import FAILED, SUCCEEDED, TERMINAL, PlanStatus, key_of, status_of
from reconcile.status.record import StepState
from reconcile.status.times import span_text, time_text
from renderer.describe import describe_value
from renderer.model.manifest_spec import Occasion, Owned
from renderer.model.phase import Deletion, Position
from renderer.model.plan_api import SUPPORTED_SPEC
from renderer.model.rendered import RenderedPhase

UPGRADE_FAILED = "UpgradeFailed"


def decide(observation: Observation, kept: Kept | None = None) -> Decision:
    """Makes the decision, the same with `kept` and without. Raises `KeyError` or `ValueError` for a status that we
    cannot have written."""
    before = status_of(observation.plan)
    builder = DecisionBuilder(observation, before, kept)
    if deletion_timestamp(observation.plan):
        _abort(builder)
    elif is_over(before):
        _after_the_end(builder)
    elif observation.others.lookup_error is not None and not before.phase:
        builder.wait(observation.others.lookup_error, limit=LONG_TO_READ, unknown=True)
        _is_degraded(builder)
    elif observation.others.blocker is not None:
        _blocked(builder, observation.others.blocker)
    elif (reason := _unsupported(observation)) is not None and before.phase != FAILED:
        _held_as_unsupported(builder, reason)
    elif before.phase == FAILED:
        _finish_failed(builder)
    else:
        _go_on(builder)
    fold_finished(builder)
    builder.kept.timed = tuple(builder.timed)
    return builder.decision(before)


def _unsupported(observation: Observation) -> str | None:
    """What the spec asks for that is not done here."""
    spec = observation.plan.get("spec") or {}
    asked = [
        f"spec.{name} is {describe_value(spec[name])}, and only {describe_value(done)} is supported"
        for name, done in SUPPORTED_SPEC.items()
        if spec.get(name) not in (None, done)
    ]
    return "; ".join(asked) or None


def _held_as_unsupported(builder: DecisionBuilder, reason: str) -> None:
    builder.waits.append(Wait(text=f"{reason}: the plan is held; remove the field, or delete the plan", slow=True))
    if reason not in (builder.status.condition("Degraded") or {}).get("message", ""):
        builder.event("Warning", "UnsupportedSpec", f"the plan is held: {reason}")
    _progressing(builder)


def is_over(status: PlanStatus) -> bool:
    """True if the plan has ended for good."""
    progressing = status.condition("Progressing")
    return status.phase in TERMINAL and progressing is not None and progressing["status"] == "False"


# ------------------------------------------------------------------------------------------------------ on the way


def _go_on(builder: DecisionBuilder) -> None:
    adopt(builder)
    phases = builder.observation.rendered.phases
    phase = builder.status.phase
    set_finalizer(builder, present=True)
    if not phase:
        _enter_next(builder, -1)
        _progressing(builder)
        return
    place = next((i for i, p in enumerate(phases) if phase in (p.phase.active, p.phase.completed)), None)
    if place is None:
        message = f"unknown phase: {phase}"
        if (builder.status.condition("Degraded") or {}).get("message") != message:
            builder.event("Warning", "ReconcileError", f"Pipeline error: {message}")
        builder.condition("Degraded", "True", "ReconcileError", message)
        remedy = "run with the templates that the plan was started with (--templates), or abort the plan"
        builder.waits.append(Wait(text=f"{message}: no template defines it; {remedy}", slow=True))
        return
    builder.condition("Available", "True", "Executable")
    _mind_the_other(builder, phases[place])
    if phase == phases[place].phase.active:
        _during(builder, phases[place])
    else:
        _after(builder, place)


def _during(builder: DecisionBuilder, phase: RenderedPhase) -> None:
    if not _is_approved(builder, phase):
        builder.closed.add(phase.phase.name)
    _maintain(builder)
    builder.waits += changed_by_others(builder, phase.steps)
    progress = run(builder, phase, Position.DURING)
    if progress is Progress.FAILED:
        _fail(builder, phase)
        return
    if progress is Progress.DONE:
        builder.enter(phase.phase.completed)
    _progressing(builder)


def _after(builder: DecisionBuilder, place: int) -> None:
    phase = builder.observation.rendered.phases[place]
    asked = repeat(builder, phase)
    progress = run(builder, phase, Position.LEAVE) if asked is Progress.DONE else asked
    if progress is Progress.FAILED:
        _fail(builder, phase)
    elif progress is Progress.DONE and place + 1 == len(builder.observation.rendered.phases):
        _finish(builder, phase)
    else:
        _maintain(builder)
        if progress is Progress.DONE and not _is_kept(builder, phase):
            _enter_next(builder, place)
        _progressing(builder)


def _mind_the_other(builder: DecisionBuilder, phase: RenderedPhase) -> None:
    """Reports a built-in Upgrade that was started while this plan runs: the operator has to delete one of the two."""
    if builder.observation.others.beside is None:
        return
    text = f'the built-in upgrade "{builder.observation.others.beside}" is running as well'
    if _is_kept(builder, phase):
        remedy = "this plan does not enter its next phase: delete one of the two"
    else:
        remedy = "this plan continues, because the cluster is half upgraded: delete the built-in upgrade"
    builder.waits.append(Wait(text=f"{text}; {remedy}", slow=True))
    if text not in (builder.status.condition("Degraded") or {}).get("message", ""):
        builder.event("Warning", "ConcurrentUpgrade", text)


def _is_kept(builder: DecisionBuilder, phase: RenderedPhase) -> bool:
    """True if the plan stops after this phase: while it can still be deleted without harm."""
    return builder.observation.others.beside is not None and phase.phase.deletion is not Deletion.FORBIDDEN


def _enter_next(builder: DecisionBuilder, place: int) -> None:
    """The steps before the next phase, and its active value once they are done."""
    upcoming = builder.observation.rendered.phases[place + 1]
    if not _is_approved(builder, upcoming):
        return
    progress = run(builder, upcoming, Position.ENTER)
    if progress is Progress.FAILED:
        _fail(builder, upcoming)
    elif progress is Progress.DONE:
        if place >= 0:
            _announce_completed(builder, builder.observation.rendered.phases[place])
        builder.enter(upcoming.phase.active)
        if upcoming.phase.emit_events:
            builder.event("Normal", "PhaseTransition", f"Entering phase {upcoming.phase.name}")


def _announce_completed(builder: DecisionBuilder, phase: RenderedPhase) -> None:
    if phase.phase.emit_events:
        builder.event("Normal", "PhaseCompleted", f"Completed phase {phase.phase.name}")


def _is_approved(builder: DecisionBuilder, phase: RenderedPhase) -> bool:
    """True if the phase is rendered as approved. Without an approval every phase may run; with one, also those that it
    lists as pending."""
    name = phase.phase.name
    approved, sealed = builder.observation.approved.get(name), builder.observation.sealed.get(name)
    if not builder.observation.approved or approved in (PENDING, sealed):
        return True
    named = "; ".join(builder.observation.unapproved.get(name, ())) or "what is pending now"
    text = f"phase {name} differs from what was approved in {named} (digest {sealed}, approved {approved})"
    if approved is None:
        text = f"phase {name} was not approved"
    builder.waits.append(Wait(text=text, step=name, slow=True))
    return False


def _maintain(builder: DecisionBuilder) -> None:
    """Restores maintained objects of completed steps that are gone."""
    phases = builder.observation.rendered.phases
    for item in (item for phase in phases for item in builder.kept.steps_of(phase).maintained):
        maintained = [m for m in item.manifests if isinstance(m.spec, Owned) and m.spec.maintained]
        if maintained and builder.status.has_completed(key_of(item)):
            gone = [manifest for manifest in maintained if builder.observation.look.get(manifest.ref) is None]
            builder.actions += [Apply(manifest=manifest, step=None) for manifest in gone]


def _blocked(builder: DecisionBuilder, blocker: str) -> None:
    message = f'another upgrade "{blocker}" is in progress'
    before = builder.status.condition("Available")
    builder.condition("Available", "False", "ConcurrentUpgradeBlocked", message)
    if not before or before["reason"] != "ConcurrentUpgradeBlocked":
        builder.event("Warning", "ConcurrentUpgradeBlocked", f'Blocked by in-progress upgrade "{blocker}"')
    builder.wait(message, limit=None)


# ------------------------------------------------------------------------------------------------------- the ends


def _fail(builder: DecisionBuilder, phase: RenderedPhase) -> None:
    """Records every failure of the phase; the plan ends in the next round."""
    records = (record for _, record in builder.status.records_of(phase.phase.name))
    texts = [record.message for record in records if record.state is StepState.FAILED]
    builder.enter(FAILED)
    builder.condition("Progressing", "True", FAILED, "; ".join(dict.fromkeys(texts)))
    builder.condition("Degraded", "True", UPGRADE_FAILED, "; ".join(builder.failures))


def _finish(builder: DecisionBuilder, last: RenderedPhase) -> None:
    if not end(builder, Occasion.SUCCESS):
        _progressing(builder)
        return
    _announce_completed(builder, last)
    builder.enter(SUCCEEDED)
    _ended(builder, SUCCEEDED, "UpgradePlan has completed")
    builder.condition("Degraded", "False", "ReconcileSuccess")
    builder.event("Normal", "UpgradeSucceeded", "Upgrade completed successfully")
    set_finalizer(builder, present=False)


def _finish_failed(builder: DecisionBuilder) -> None:
    adopt(builder)
    if not end(builder, Occasion.FAILURE):
        _is_degraded(builder)
        return
    message = (builder.status.condition("Progressing") or {}).get("message", "")
    degraded = builder.status.condition("Degraded") or {}
    why = degraded["message"] if degraded.get("reason") == UPGRADE_FAILED else message
    _ended(builder, FAILED, message, why)
    builder.condition("Degraded", "True", UPGRADE_FAILED, why)
    builder.event("Warning", "UpgradeFailed", f"Upgrade failed: {message}" if message else "Upgrade failed")
    if not _open_loans(builder):
        set_finalizer(builder, present=False)


def _ended(builder: DecisionBuilder, phase: str, message: str, why: str = "") -> None:
    """`message` is the API's, `why` says more of it."""
    builder.condition("Available", "False", "Executed", "Entered one of the terminal phases")
    builder.condition("Progressing", "False", phase, message)
    text = why or message
    _kstatus(builder, ready=phase == SUCCEEDED, moving=False, stalled=phase == FAILED, reason=phase, message=text)


def _after_the_end(builder: DecisionBuilder) -> None:
    """Removes the finalizer if it is still there; nothing else is left to do."""
    if builder.status.phase == SUCCEEDED or not _open_loans(builder):
        set_finalizer(builder, present=False)


def _abort(builder: DecisionBuilder) -> None:
    adopt(builder)
    if end(builder, Occasion.ABORT):
        set_finalizer(builder, present=False)
        return
    waits = "; ".join([*dict.fromkeys(wait.text for wait in builder.waits)][:3])
    message = f"the plan is being deleted: {waits}" if waits else "the plan is being deleted"
    builder.condition("Progressing", "True", "Deleting", message)
    _kstatus(builder, ready=False, moving=True, stalled=False, reason="Deleting", message=message)
    _is_degraded(builder)


def _open_loans(builder: DecisionBuilder) -> bool:
    return any(loan.returned is None for loan in builder.status.loans)


# ------------------------------------------------------------------------------------------------------ conditions


def _progressing(builder: DecisionBuilder) -> None:
    """Sets Progressing to the phase and what it waits for, and Degraded to what takes too long."""
    if builder.status.phase in TERMINAL:
        return
    held = "; ".join(f"{text}: {', '.join(sorted(nodes))}" for text, nodes in builder.held.items())
    message, reason = held or builder.progress, builder.status.phase or "Pending"
    builder.condition("Progressing", "True", reason, message)
    waits = "; ".join([*dict.fromkeys(wait.text for wait in builder.waits)][:3])
    _kstatus(builder, ready=False, moving=True, stalled=False, reason=reason, message=message or waits)
    if not _is_degraded(builder):
        builder.condition("Degraded", "False", "ReconcileSuccess")


def _is_degraded(builder: DecisionBuilder) -> bool:
    """True if something is wrong or takes too long; if so, sets Degraded."""
    slow = [wait for wait in builder.waits if wait.slow]
    if builder.observation.errors:
        builder.condition("Degraded", "True", "ReconcileError", "; ".join(builder.observation.errors[:5]))
    elif slow:
        builder.condition("Degraded", "True", "WaitingLong", "; ".join(dict.fromkeys(map(_said, slow[:5]))))
    return bool(builder.observation.errors or slow)


def _said(wait: Wait) -> str:
    since = f" since {time_text(wait.since)}" if wait.since else ""
    limit = f", longer than {span_text(wait.limit)}" if wait.limit is not None else ""
    return f"{f'{wait.step}: ' if wait.step else ''}{wait.text}{since}{limit}"


def _kstatus(builder: DecisionBuilder, *, ready: bool, moving: bool, stalled: bool, reason: str, message: str) -> None:
    """Sets the kstatus conditions, by which Flux, Helm and kubectl judge any custom resource."""
    for kind, there in (("Ready", ready), ("Reconciling", moving), ("Stalled", stalled)):
        builder.condition(kind, "True" if there else "False", reason, message)
