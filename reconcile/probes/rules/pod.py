"""A Pod that serves, or has done its work."""

from __future__ import annotations

from reconcile import objects
from reconcile.probes.rules.call import RuleCall
from reconcile.probes.verdict import Verdict, passed, waiting
from renderer.model.path import look_up


def ready(call: RuleCall) -> Verdict:
    """Ready, or Succeeded. A Pod that is waiting says what its containers wait for."""
    phase = look_up(call.body, ("status", "phase"))
    if phase == "Succeeded":
        return passed("status.phase is 'Succeeded'")
    found = objects.condition(call.body, "Ready")
    if found is not None and found.status == "True":
        return passed("condition Ready is True")
    says = f"condition Ready is {found.status if found else 'absent'}, expected True"
    return waiting(", ".join((says, *_stuck(call))))


def _stuck(call: RuleCall) -> tuple[str, ...]:
    """`container apply is waiting: ImagePullBackOff`, one for each container that says so."""
    statuses = [
        status
        for field in ("initContainerStatuses", "containerStatuses")
        for status in objects.items(look_up(call.body, ("status", field)))
    ]
    reasons = [(look_up(status, ("name",)), look_up(status, ("state", "waiting", "reason"))) for status in statuses]
    return tuple(f"container {name} is waiting: {reason}" for name, reason in reasons if reason)
