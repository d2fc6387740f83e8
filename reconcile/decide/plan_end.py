"""The ends of a plan: it fails, succeeds, or is taken back. Each waits until everything is returned and removed."""

from __future__ import annotations

from reconcile.decide.after_checks import verify
from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.ending import end, set_finalizer
from reconcile.decide.plan_conditions import first_waits, set_degraded, set_kstatus, set_progressing
from reconcile.decide.takeover import adopt
from reconcile.status.attempt import is_taken_back
from reconcile.status.plan import FAILED, SUCCEEDED
from reconcile.status.record import StepState
from renderer.model.manifest_spec import Occasion
from renderer.model.rendered import RenderedPhase

UPGRADE_FAILED = "UpgradeFailed"


def fail(builder: DecisionBuilder, phase: RenderedPhase) -> None:
    """Records every failure of the phase; the plan ends in the next round."""
    records = (record for _, record in builder.status.records_of(phase.phase.name))
    texts = [record.message for record in records if record.state is StepState.FAILED]
    builder.enter(FAILED)
    builder.condition("Progressing", "True", FAILED, "; ".join(dict.fromkeys(texts)))
    builder.condition("Degraded", "True", UPGRADE_FAILED, "; ".join(builder.failures))


def finish(builder: DecisionBuilder, last: RenderedPhase) -> None:
    if not end(builder, Occasion.SUCCESS):
        set_progressing(builder)
        return
    verify(builder)
    announce_completed(builder, last)
    builder.enter(SUCCEEDED)
    _ended(builder, SUCCEEDED, "UpgradePlan has completed")
    builder.condition("Degraded", "False", "ReconcileSuccess")
    builder.event("Normal", "UpgradeSucceeded", "Upgrade completed successfully")
    set_finalizer(builder, present=False)


def finish_failed(builder: DecisionBuilder) -> None:
    adopt(builder)
    if not end(builder, Occasion.FAILURE):
        waits = first_waits(builder)
        set_kstatus(builder, ready=False, moving=True, stalled=False, reason=FAILED, message=waits)
        set_degraded(builder)
        return
    message = (builder.status.condition("Progressing") or {}).get("message", "")
    degraded = builder.status.condition("Degraded") or {}
    why = degraded["message"] if degraded.get("reason") == UPGRADE_FAILED else message
    _ended(builder, FAILED, message, why)
    told = dict.fromkeys(filter(None, (*builder.observation.causes, why)))
    builder.condition("Degraded", "True", UPGRADE_FAILED, "; ".join(told))
    builder.event("Warning", "UpgradeFailed", f"Upgrade failed: {message}" if message else "Upgrade failed")
    if not _open_loans(builder):
        set_finalizer(builder, present=False)


def _ended(builder: DecisionBuilder, phase: str, message: str, why: str = "") -> None:
    """`message` is the API's, `why` says more of it."""
    builder.condition("Available", "False", "Executed", "Entered one of the terminal phases")
    builder.condition("Progressing", "False", phase, message)
    text = why or message
    set_kstatus(builder, ready=phase == SUCCEEDED, moving=False, stalled=phase == FAILED, reason=phase, message=text)


def tidy(builder: DecisionBuilder) -> None:
    """Removes the finalizer if it is still there; nothing else is left to do, unless the plan is taken back."""
    if builder.status.phase == FAILED and is_taken_back(builder.observation.plan):
        _take_back(builder)
    elif builder.status.phase == SUCCEEDED or not _open_loans(builder):
        set_finalizer(builder, present=False)


def _take_back(builder: DecisionBuilder) -> None:
    """Returns and removes what an aborted plan does; the record stays."""
    adopt(builder)
    if end(builder, Occasion.ABORT):
        set_finalizer(builder, present=False)


def abort(builder: DecisionBuilder) -> None:
    adopt(builder)
    if end(builder, Occasion.ABORT):
        set_finalizer(builder, present=False)
        return
    waits = first_waits(builder)
    message = f"the plan is being deleted: {waits}" if waits else "the plan is being deleted"
    builder.condition("Progressing", "True", "Deleting", message)
    set_kstatus(builder, ready=False, moving=True, stalled=False, reason="Deleting", message=message)
    set_degraded(builder)


def _open_loans(builder: DecisionBuilder) -> bool:
    return any(loan.returned is None for loan in builder.status.loans)


def announce_completed(builder: DecisionBuilder, phase: RenderedPhase) -> None:
    if phase.phase.emit_events:
        builder.event("Normal", "PhaseCompleted", f"Completed phase {phase.phase.name}")
