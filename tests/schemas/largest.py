"""Plans for 1,000 nodes with names of 63 characters, each at a moment when its status is as large as it gets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

NODES = tuple(f"rack-{number:04}-compute-in-a-room-with-a-long-name-".ljust(63, "x") for number in range(1000))
OWNING = ("PreDrain", "PostDrain", "RestoreVM")
OTHERS = ("AcknowledgePreDrain", "WaitingReboot", "AcknowledgePostDrain")
TIME = "2026-11-28T09:30:00Z"
DIGEST = "3f2a9c01d4e5"
SEAL = f"sha256:{'ab' * 32}"
PHASES = tuple(f"PhaseNumber{number}" for number in range(12))


def paused() -> Mapping[str, Any]:
    """Every node is held: all stand in the spec, and each in the status with reason and sentence."""
    held = {
        "state": "UpgradePaused",
        "reason": "AdministrativelyPaused",
        "message": "Node upgrade paused as requested by the user",
    }
    return _plan({"nodeUpgradeOption": {"pauseNodes": list(NODES)}}, {"nodeUpgradeStatuses": _for(NODES, held)})


def at_work() -> Mapping[str, Any]:
    """Every node is in the same step, which no trigger paces, with a Job each."""
    states = _for(NODES, {"state": "SingleNodeUpgrading"})
    records = {f"Inventory/{node}": _record(f"hvst-upgrade-864fh-{node}"[:63]) for node in NODES}
    return _plan({}, {"nodeUpgradeStatuses": states, "steps": _steps() | {"NodeUpgrade": {"records": records}}})


def done() -> Mapping[str, Any]:
    """Every node has gone through every step."""
    states = _for(NODES, {"state": "ImageCleaned"})
    lines = dict.fromkeys(OWNING, f"{TIME} 1312s {DIGEST}") | dict.fromkeys(OTHERS, f"{TIME} 1312s")
    steps = _steps() | {"NodeUpgrade": {"records": _once(), "done": _for(NODES, lines)}}
    return _plan({}, {"nodeUpgradeStatuses": states, "steps": steps})


def _for(names: Iterable[str], value: Mapping[str, Any]) -> dict[str, Any]:
    return dict.fromkeys(names, value)


def _plan(spec: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = {"name": "hvst-upgrade-864fh"}
    return {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": metadata,
        "spec": {"version": "v1.8.0", "restoreVM": True, **spec},
        "status": {**_rest(), **status},
    }


def _rest() -> Mapping[str, Any]:
    """What every status holds, at a generous size."""
    conditions = [
        {"type": kind, "status": "True", "reason": "NodeUpgrading", "message": "m" * 500, "lastTransitionTime": TIME}
        for kind in ("Available", "Progressing", "Degraded", "Ready", "Reconciling", "Stalled")
    ]
    return {
        "conditions": conditions,
        "borrowed": [_borrowed(f"/spec/field{number}") for number in range(12)],
        "phaseTransitionTimestamps": [{"phase": phase, "phaseTransitionTimestamp": TIME} for phase in PHASES * 2],
        "templates": {"digest": SEAL, "files": {f"70-node-upgrade/manifest-{n}.yaml.j2": DIGEST for n in range(60)}},
    }


def _borrowed(path: str) -> Mapping[str, Any]:
    return {
        "phase": "NodeUpgrade",
        "step": "Provision",
        "apiVersion": "provisioning.cattle.io/v1",
        "kind": "Cluster",
        "namespace": "fleet-local",
        "name": "local",
        "path": path,
        "absent": False,
        "value": "v" * 300,
        "taken": TIME,
        "returned": TIME,
    }


def _steps() -> dict[str, Any]:
    return {phase: {"records": _once()} for phase in PHASES}


def _once() -> dict[str, Any]:
    return {f"StepNumber{number}": {**_record("o" * 63), "ended": TIME} for number in range(3)}


def _record(job: str) -> dict[str, Any]:
    where = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "harvester-system", "name": job}
    owned = {**where, "template": "single-node-upgrade-job.yaml.j2", "digest": DIGEST}
    return {"state": "Applied", "started": TIME, "objects": [owned]}
