"""The status of a plan with 1,000 nodes at its largest."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from support.rendered_plans import render_made, three_nodes

from reconcile.status.plan import Place, PlanStatus
from reconcile.status.record import OwnedObject, StepRecord, StepState
from renderer.model.manifest_spec import Owned
from renderer.model.ref import Ref
from renderer.model.rendered import RenderedStep

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIMIT = 640 * 1024
"""Bytes; etcd refuses more than 1.5 MB, and the plan may take less than half of it."""


def largest_status(*, in_flight: int) -> PlanStatus:
    """A thousand nodes that are through all their steps of NodeUpgrade; `in_flight` are not folded yet. What was done
    for a node in earlier phases is forgotten."""
    plan = render_made(*three_nodes(version="v1.8.0", restoreVM=True)).plan
    steps = [item for phase in plan.phases for item in phase.steps if item.step.node == "n1"]
    fanned = [item for item in steps if item.step.again is None]
    assert {item.phase for item in fanned} == {"NodeUpgrade"}
    nodes = [f"worker-{number:04}.rack-12.dc-1.example" for number in range(1000)]
    status = PlanStatus(phase="NodeUpgrading", node_states={node: {"state": "PostDrained"} for node in nodes})
    records: dict[Place, dict[str, StepRecord]] = {
        ("NodeUpgrade", node): {item.step.name: _ended(item) for item in fanned} for node in nodes
    }
    status = replace(status, records=records)
    for node in nodes[in_flight:]:
        status = status.fold("NodeUpgrade", node)
    return status


def _ended(item: RenderedStep) -> StepRecord:
    """With a Job whose name is as long as it may be, where the step makes one."""
    if item.skipped is not None:
        return StepRecord(state=StepState.SKIPPED, started=NOW, ended=NOW, message=item.skipped)
    ref = Ref(api_version="batch/v1", kind="Job", namespace="harvester-system", name="x" * 63)
    owned = tuple(
        OwnedObject(ref=ref, template=spec.file, digest="0" * 12)
        for spec in item.step.manifests
        if isinstance(spec, Owned)
    )
    return StepRecord(state=StepState.COMPLETED, started=NOW, ended=NOW + timedelta(hours=1), objects=owned)
