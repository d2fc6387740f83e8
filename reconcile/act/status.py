"""Writes the status of a plan as a merge patch (RFC 7386) of what has changed, and only onto the plan that was read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconcile.cluster.errors import Conflict, NotFound
from reconcile.cluster.protocol import Cluster
from reconcile.status.plan import PlanStatus
from reconcile.status.plan_body import status_body
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, ref_of
from renderer.model.sharing import changed


def write_status(cluster: Cluster, kinds: Kinds, plan: Body, before: PlanStatus, status: PlanStatus) -> Body | None:
    """The plan with that status; None where it has changed, or is gone, since it was read with the status `before`."""
    if status == before:
        return plan
    ref = ref_of(plan)
    patch = {
        "metadata": {"resourceVersion": plan["metadata"]["resourceVersion"]},
        "status": merge_patch(status_body(before), status_body(status)),
    }
    try:
        return cluster.patch(kinds.row(ref.api_version, ref.kind).kind, ref, patch, subresource="status").body
    except (Conflict, NotFound):
        return None


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Empty where nothing differs. The very same part, as most of a large status, is not gone through."""
    patch: dict[str, Any] = {}
    for key in changed(new, old):
        value, before = new.get(key), old.get(key)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            patch[key] = merge_patch(before, value)
        else:
            patch[key] = value
    return patch
