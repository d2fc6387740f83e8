"""The versions before and after a run, of the cluster and of each node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconcile.report_page.recorded_run import NodeVersions, RecordedRun
from reconcile.status.plan import SUCCEEDED
from renderer.model.path import look_up

Model = dict[str, Any]

_NONE = NodeVersions(os="", kubernetes="")


def versions_of(run: RecordedRun) -> list[Model]:
    """Harvester's, and each node's own; empty where nothing says it."""
    status, spec = run.last.status, run.plan.get("spec") or {}
    release = status.get("releaseMetadata") or {}
    before = str(status.get("previousVersion") or "")
    after = str(release.get("harvester") or spec.get("version") or spec.get("image") or "")
    rows = [_row("Harvester", before, after if status.get("currentPhase") == SUCCEEDED else "")]
    nodes = [*dict.fromkeys(name for moment in run.moments for name in moment.sighting.nodes)]
    for name in sorted(nodes):
        seen = [moment.sighting.nodes[name] for moment in run.moments if name in moment.sighting.nodes]
        rows += _of_node(name, seen, release)
    return rows


def _of_node(name: str, seen: Sequence[NodeVersions], release: Mapping[str, Any]) -> list[Model]:
    """For a node that was seen once, the release decides whether that was before or after."""
    first, last = seen[0], seen[-1]
    if len(seen) == 1 and first.os == look_up(release, ("os",)):
        first = _NONE
    elif len(seen) == 1:
        last = _NONE
    return [
        _row(f"operating system of {name}", first.os, last.os),
        _row(f"Kubernetes of {name}", first.kubernetes, last.kubernetes),
    ]


def _row(what: str, before: str, after: str) -> Model:
    return {"what": what, "before": before, "after": after}
