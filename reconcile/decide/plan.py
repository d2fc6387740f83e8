"""What is to be done about a plan now: begin, go on, wait its turn, fail, end, or be taken back.

Every phase value is recorded in a round of its own, so that whoever watches sees each of them.
"""

from __future__ import annotations

from reconcile.decide.adopt import adopt
from reconcile.decide.decision import Apply, Decision, Wait
from reconcile.decide.draft import LONG_TO_READ, Draft
from reconcile.decide.ending import end, set_finalizer
from reconcile.decide.giving import changed_by_others
from reconcile.decide.phase import repeat, run
from reconcile.decide.step import Progress
from reconcile.decide.world import PENDING, World
from reconcile.objects import deletion_timestamp
from reconcile.status.plan import FAILED, SUCCEEDED, TERMINAL, PlanStatus, key_of, status_of
from reconcile.status.record import StepState
from reconcile.status.times import span_text, time_text
from renderer.model.phase import Deletion, Occasion, Owned, Position
from renderer.model.rendered import RenderedPhase

UPGRADE_FAILED = "UpgradeFailed"


def decide(world: World) -> Decision:
    """The one decision. Raises `KeyError` or `ValueError` where the plan's status is none that we can have written."""
    before = status_of(world.plan)
    draft = Draft(world, before)
    if deletion_timestamp(world.plan):
        _abort(draft)
    elif is_over(before):
        _after_the_end(draft)
    elif world.others.unlooked is not None and not before.phase:
        draft.wait(world.others.unlooked, limit=LONG_TO_READ, unknown=True)
        _is_degraded(draft)
    elif world.others.blocker is not None:
        _blocked(draft, world.others.blocker)
    elif before.phase == FAILED:
        _finish_failed(draft)
    else:
        _go_on(draft)
    return draft.decision(before)


def is_over(status: PlanStatus) -> bool:
    """Whether the plan has ended for good."""
    progressing = status.condition("Progressing")
    return status.phase in TERMINAL and progressing is not None and progressing["status"] == "False"


# ------------------------------------------------------------------------------------------------------ on the way


def _go_on(draft: Draft) -> None:
    adopt(draft)
    phases = draft.world.rendered.phases
    phase = draft.status.phase
    set_finalizer(draft, present=True)
    if not phase:
        _enter_next(draft, -1)
        _progressing(draft)
        return
    place = next((i for i, p in enumerate(phases) if phase in (p.phase.active, p.phase.completed)), None)
    if place is None:
        message = f"unknown phase: {phase}"
        if (draft.status.condition("Degraded") or {}).get("message") != message:
            draft.event("Warning", "ReconcileError", f"Pipeline error: {message}")
        draft.condition("Degraded", "True", "ReconcileError", message)
        remedy = "no template has it; give the templates that the plan was begun with (--templates), or abort the plan"
        draft.waits.append(Wait(text=f"{message}: {remedy}", slow=True))
        return
    draft.condition("Available", "True", "Executable")
    _mind_the_other(draft, phases[place])
    if phase == phases[place].phase.active:
        _during(draft, phases[place])
    else:
        _after(draft, place)


def _during(draft: Draft, phase: RenderedPhase) -> None:
    if not _is_approved(draft, phase):
        _progressing(draft)
        return
    _maintain(draft)
    draft.waits += changed_by_others(draft, phase.steps)
    progress = run(draft, phase, Position.DURING)
    if progress is Progress.FAILED:
        _fail(draft, phase)
        return
    if progress is Progress.DONE:
        draft.enter(phase.phase.completed)
    _progressing(draft)


def _after(draft: Draft, place: int) -> None:
    phase = draft.world.rendered.phases[place]
    asked = repeat(draft, phase)
    progress = run(draft, phase, Position.LEAVE) if asked is Progress.DONE else asked
    if progress is Progress.FAILED:
        _fail(draft, phase)
    elif progress is Progress.DONE and place + 1 == len(draft.world.rendered.phases):
        _finish(draft, phase)
    else:
        _maintain(draft)
        if progress is Progress.DONE and not _is_kept(draft, phase):
            _enter_next(draft, place)
        _progressing(draft)


def _mind_the_other(draft: Draft, phase: RenderedPhase) -> None:
    """A built-in Upgrade that was begun although this plan runs: the operator has to say which of the two goes."""
    if draft.world.others.beside is None:
        return
    text = f'the built-in upgrade "{draft.world.others.beside}" runs as well'
    if _is_kept(draft, phase):
        remedy = "this plan does not go on to its next phase: delete one of the two"
    else:
        remedy = "this plan goes on, since the cluster is half upgraded: delete the built-in one"
    draft.waits.append(Wait(text=f"{text}; {remedy}", slow=True))
    if text not in (draft.status.condition("Degraded") or {}).get("message", ""):
        draft.event("Warning", "ConcurrentUpgrade", text)


def _is_kept(draft: Draft, phase: RenderedPhase) -> bool:
    """Whether the plan may not go on after this phase: as long as it can be deleted without harm."""
    return draft.world.others.beside is not None and phase.phase.deletion is not Deletion.FORBIDDEN


def _enter_next(draft: Draft, place: int) -> None:
    """The steps before the next phase, and its active value once they are done."""
    upcoming = draft.world.rendered.phases[place + 1]
    if not _is_approved(draft, upcoming):
        return
    progress = run(draft, upcoming, Position.ENTER)
    if progress is Progress.FAILED:
        _fail(draft, upcoming)
    elif progress is Progress.DONE:
        if place >= 0:
            _announce_completed(draft, draft.world.rendered.phases[place])
        draft.enter(upcoming.phase.active)
        if upcoming.phase.announce:
            draft.event("Normal", "PhaseTransition", f"Entering phase {upcoming.phase.name}")


def _announce_completed(draft: Draft, phase: RenderedPhase) -> None:
    if phase.phase.announce:
        draft.event("Normal", "PhaseCompleted", f"Completed phase {phase.phase.name}")


def _is_approved(draft: Draft, phase: RenderedPhase) -> bool:
    """Whether the phase is rendered as it was approved. Without any approval all are free to go; with one, those that
    it names as pending are."""
    name = phase.phase.name
    approved, sealed = draft.world.approved.get(name), draft.world.sealed.get(name)
    if not draft.world.approved or approved in (PENDING, sealed):
        return True
    named = "; ".join(draft.world.unapproved.get(name, ())) or "what is pending now"
    text = f"phase {name} is not what was approved; it differs in {named} (digest {sealed}, approved {approved})"
    if approved is None:
        text = f"phase {name} is not among those that were approved"
    draft.waits.append(Wait(text=text, step=name, slow=True))
    return False


def _maintain(draft: Draft) -> None:
    """Brings back what earlier steps made and later ones still need."""
    steps = (item for phase in draft.world.rendered.phases for item in phase.steps)
    for item in (item for item in steps if draft.status.has_completed(key_of(item))):
        for manifest in item.manifests:
            if isinstance(manifest.spec, Owned) and manifest.spec.maintained:
                live = draft.world.look.get(manifest.ref)
                if live is None:
                    draft.actions.append(Apply(manifest=manifest, step=None))


def _blocked(draft: Draft, blocker: str) -> None:
    message = f'another upgrade "{blocker}" is in progress'
    before = draft.status.condition("Available")
    draft.condition("Available", "False", "ConcurrentUpgradeBlocked", message)
    if not before or before["reason"] != "ConcurrentUpgradeBlocked":
        draft.event("Warning", "ConcurrentUpgradeBlocked", f'Blocked by in-progress upgrade "{blocker}"')
    draft.wait(message, limit=None)


# ------------------------------------------------------------------------------------------------------- the ends


def _fail(draft: Draft, phase: RenderedPhase) -> None:
    """Every failure of the phase, by node; the plan is finished in the next round."""
    records = (record for _, record in draft.status.records_of(phase.phase.name))
    texts = [record.message for record in records if record.state is StepState.FAILED]
    draft.enter(FAILED)
    draft.condition("Progressing", "True", FAILED, "; ".join(dict.fromkeys(texts)))
    draft.condition("Degraded", "True", UPGRADE_FAILED, "; ".join(draft.failures))


def _finish(draft: Draft, last: RenderedPhase) -> None:
    if not end(draft, Occasion.SUCCESS):
        _progressing(draft)
        return
    _announce_completed(draft, last)
    draft.enter(SUCCEEDED)
    _ended(draft, SUCCEEDED, "UpgradePlan has completed")
    draft.condition("Degraded", "False", "ReconcileSuccess")
    draft.event("Normal", "UpgradeSucceeded", "Upgrade completed successfully")
    set_finalizer(draft, present=False)


def _finish_failed(draft: Draft) -> None:
    adopt(draft)
    if not end(draft, Occasion.FAILURE):
        _is_degraded(draft)
        return
    message = (draft.status.condition("Progressing") or {}).get("message", "")
    degraded = draft.status.condition("Degraded") or {}
    why = degraded["message"] if degraded.get("reason") == UPGRADE_FAILED else message
    _ended(draft, FAILED, message, why)
    draft.condition("Degraded", "True", UPGRADE_FAILED, why)
    draft.event("Warning", "UpgradeFailed", f"Upgrade failed: {message}" if message else "Upgrade failed")
    if not _open_loans(draft):
        set_finalizer(draft, present=False)


def _ended(draft: Draft, phase: str, message: str, why: str = "") -> None:
    """`message` is the API's, `why` says more of it."""
    draft.condition("Available", "False", "Executed", "Entered one of the terminal phases")
    draft.condition("Progressing", "False", phase, message)
    text = why or message
    _kstatus(draft, ready=phase == SUCCEEDED, moving=False, stalled=phase == FAILED, reason=phase, message=text)


def _after_the_end(draft: Draft) -> None:
    """Nothing runs any more; only a finalizer that was not taken off yet is."""
    if draft.status.phase == SUCCEEDED or not _open_loans(draft):
        set_finalizer(draft, present=False)


def _abort(draft: Draft) -> None:
    adopt(draft)
    if end(draft, Occasion.ABORT):
        set_finalizer(draft, present=False)
        return
    waits = "; ".join([*dict.fromkeys(wait.text for wait in draft.waits)][:3])
    message = f"the plan is being deleted: {waits}" if waits else "the plan is being deleted"
    draft.condition("Progressing", "True", "Deleting", message)
    _kstatus(draft, ready=False, moving=True, stalled=False, reason="Deleting", message=message)
    _is_degraded(draft)


def _open_loans(draft: Draft) -> bool:
    return any(loan.returned is None for loan in draft.status.loans)


# ------------------------------------------------------------------------------------------------------ conditions


def _progressing(draft: Draft) -> None:
    """Progressing says the phase and what it waits for; Degraded says what takes too long."""
    if draft.status.phase in TERMINAL:
        return
    held = "; ".join(f"{text}: {', '.join(sorted(nodes))}" for text, nodes in draft.held.items())
    message, reason = held or draft.progress, draft.status.phase or "Pending"
    draft.condition("Progressing", "True", reason, message)
    waits = "; ".join([*dict.fromkeys(wait.text for wait in draft.waits)][:3])
    _kstatus(draft, ready=False, moving=True, stalled=False, reason=reason, message=message or waits)
    if not _is_degraded(draft):
        draft.condition("Degraded", "False", "ReconcileSuccess")


def _is_degraded(draft: Draft) -> bool:
    """Whether something is wrong or takes too long; then Degraded says it."""
    slow = [wait for wait in draft.waits if wait.slow]
    if draft.world.errors:
        draft.condition("Degraded", "True", "ReconcileError", "; ".join(draft.world.errors[:5]))
    elif slow:
        draft.condition("Degraded", "True", "WaitingLong", "; ".join(dict.fromkeys(map(_said, slow[:5]))))
    return bool(draft.world.errors or slow)


def _said(wait: Wait) -> str:
    since = f" since {time_text(wait.since)}" if wait.since else ""
    limit = f", longer than {span_text(wait.limit)}" if wait.limit is not None else ""
    return f"{wait.step}: {wait.text}{since}{limit}"


def _kstatus(draft: Draft, *, ready: bool, moving: bool, stalled: bool, reason: str, message: str) -> None:
    """The conditions by which Flux, Helm and kubectl judge an object they do not know."""
    for kind, there in (("Ready", ready), ("Reconciling", moving), ("Stalled", stalled)):
        draft.condition(kind, "True" if there else "False", reason, message)
