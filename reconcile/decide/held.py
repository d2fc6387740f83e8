"""A plan that does not continue: its spec is not supported, another manager has blocked it for good, or another
upgrade is in progress."""

from __future__ import annotations

from reconcile.decide.builder import DecisionBuilder, WaitRequest
from reconcile.decide.observation import Observation
from reconcile.decide.plan_conditions import set_degraded, set_kstatus, set_progressing
from reconcile.status.plan import PlanStatus
from renderer.describe import describe_value
from renderer.model.plan_api import SUPPORTED_SPEC


def unsupported(observation: Observation) -> str | None:
    """The fields of the spec that are not supported here."""
    spec = observation.plan.get("spec") or {}
    asked = [
        f"spec.{name} is {describe_value(spec[name])}, and only {describe_value(done)} is supported"
        for name, done in SUPPORTED_SPEC.items()
        if spec.get(name) not in (None, done)
    ]
    return "; ".join(asked) or None


def held_as_unsupported(builder: DecisionBuilder, reason: str) -> None:
    since = builder.waiting_since(reason)
    builder.wait_for_operator(f"{reason}: the plan is held; remove the field, or delete the plan", since=since)
    if reason not in (builder.status.condition("Degraded") or {}).get("message", ""):
        builder.event("Warning", "UnsupportedSpec", f"the plan is held: {reason}")
    set_progressing(builder)


def is_latched(observation: Observation, status: PlanStatus) -> bool:
    """True if another manager has blocked the plan for good, and nobody has changed it since: that manager ignores it
    from then on, and whoever created it may have forgotten it. A plan that waits its turn here is Reconciling."""
    available = status.condition("Available") or {}
    if available.get("reason") != "ConcurrentUpgradeBlocked" or status.condition("Reconciling") or status.records:
        return False
    generation = observation.plan["metadata"].get("generation") or 0
    return not observation.approved and generation <= (available.get("observedGeneration") or generation)


def held_as_latched(builder: DecisionBuilder) -> None:
    name = builder.observation.plan["metadata"]["name"]
    why = "another manager has blocked the plan as ConcurrentUpgradeBlocked, so it does not begin automatically"
    builder.wait_for_operator(
        f"`upgradeplan approve {name}`, or an edit of its spec: {why}", since=builder.waiting_since("latched")
    )
    set_degraded(builder)


def blocked(builder: DecisionBuilder, blocker: str) -> None:
    message = f'another upgrade "{blocker}" is in progress'
    if is_latched(builder.observation, builder.status):
        builder.ask(WaitRequest(text=message, since=builder.waiting_since(f"blocked by {blocker}"), limit=None))
        return
    before = builder.status.condition("Available")
    builder.condition("Available", "False", "ConcurrentUpgradeBlocked", message)
    if not before or before["reason"] != "ConcurrentUpgradeBlocked":
        builder.event("Warning", "ConcurrentUpgradeBlocked", f'Blocked by in-progress upgrade "{blocker}"')
    set_kstatus(builder, ready=False, moving=True, stalled=False, reason="ConcurrentUpgradeBlocked", message=message)
    builder.ask(WaitRequest(text=message, since=builder.waiting_since(f"blocked by {blocker}"), limit=None))
