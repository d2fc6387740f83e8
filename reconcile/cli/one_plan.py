"""The live plan that a command controls, and the one patch that it sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reconcile.cli.connect import Target
from renderer.errors import ExitCode, problem

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps


def plan_on(target: Target, name: str | None) -> tuple[ReconcilerDeps, str, Mapping[str, Any]]:
    """The parts, the plan's name and the plan. Raises `Problems`."""
    from reconcile.cli.parts import parts_of

    parts = parts_of(target)
    return (parts, *plan_of(parts, name))


def plan_of(parts: ReconcilerDeps, name: str | None) -> tuple[str, Mapping[str, Any]]:
    """The plan's name and the plan. Raises `Problems`."""
    from reconcile.cli.parts import plan_named, plan_there

    plan = plan_named(parts, name)
    body = plan_there(parts, plan)
    if body is None:
        raise problem("NoSuchPlan", f"UpgradePlan {plan} not found", remedy="it was deleted meanwhile; try again")
    return plan, body


def must_go_on(plan: str, body: Mapping[str, Any]) -> None:
    """Raises `Problems` for a plan that has ended."""
    from reconcile.decide.plan import is_over
    from reconcile.status.plan_body import status_of

    status = status_of(body)
    if is_over(status):
        remedy = f"its record stays until you delete it: kubectl delete upgradeplan {plan}"
        raise problem("PlanHasEnded", f"{plan} has ended: {status.phase}", remedy=remedy, exit_code=ExitCode.NO)


def patch_plan(parts: ReconcilerDeps, body: Mapping[str, Any], patch: Mapping[str, Any]) -> None:
    """Refused where somebody else has changed the plan since."""
    from renderer.model.ref import ref_of

    ref = ref_of(body)
    metadata = {**patch.get("metadata", {}), "resourceVersion": body["metadata"]["resourceVersion"]}
    parts.cluster.patch(parts.kinds.row(ref.api_version, ref.kind).kind, ref, {**patch, "metadata": metadata})
