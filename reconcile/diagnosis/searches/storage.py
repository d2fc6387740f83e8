"""Finds what blocks the drain of a node in Longhorn: volumes with one replica, degraded ones, those that are being
rebuilt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconcile.diagnosis.situation import ENGINES, REPLICAS, VOLUMES, Cause, Situation, condition_of, mapping, text
from renderer.model.path import look_up
from renderer.model.ref import Body, ref_of

_TROUBLE = ("degraded", "faulted")


def volumes(situation: Situation) -> Iterator[Cause]:
    """While a node is under way: every volume in trouble, and those in use there that have one replica."""
    if not situation.busy and not situation.named("Volume"):
        return
    rebuilding = {text(engine, "spec", "volumeName"): _progress(engine) for engine in situation.all(ENGINES)}
    for volume in situation.all(VOLUMES):
        name, node = ref_of(volume).name, text(volume, "status", "currentNodeID")
        if progress := rebuilding.get(name):
            yield _rebuilding(volume, progress, node)
        elif text(volume, "status", "robustness") in _TROUBLE:
            yield _in_trouble(volume, node, _rebooting(situation))
        elif look_up(volume, ("spec", "numberOfReplicas")) == 1 and node in situation.busy:
            yield _single(situation, volume, node)


def last_replicas(situation: Situation, node: str) -> tuple[str, ...]:
    """The volumes that have all their replicas on the node, as people call them."""
    places: dict[str, set[str]] = {}
    for replica in situation.all(REPLICAS):
        if not text(replica, "spec", "failedAt"):
            places.setdefault(text(replica, "spec", "volumeName"), set()).add(text(replica, "spec", "nodeID"))
    return tuple(
        f"Volume {ref_of(volume).name}{_workload(volume)}"
        for volume in situation.all(VOLUMES)
        if places.get(ref_of(volume).name) == {node}
    )


def _progress(engine: Body) -> str:
    """Of the replicas that are being rebuilt, how far they are; empty if none is."""
    found: Mapping[str, object] = mapping(engine, "status", "rebuildStatus")
    running = [item for item in found.values() if text(item, "state") == "in_progress" or text(item, "isRebuilding")]
    return ", ".join(f"{text(item, 'progress') or 0}%" for item in running)


def _workload(volume: Body) -> str:
    status = mapping(volume, "status", "kubernetesStatus")
    claim = text(status, "pvcName")
    return f" (PersistentVolumeClaim {text(status, 'namespace')}/{claim})" if claim else ""


def _rebuilding(volume: Body, progress: str, node: str) -> Cause:
    return Cause(
        object=str(ref_of(volume)),
        what=f"a replica is being rebuilt, {progress}{_workload(volume)}",
        node=node,
        patient=True,
        remedy=f"wait; it continues automatically: kubectl get engines.longhorn.io -n longhorn-system "
        f"-l longhornvolume={ref_of(volume).name} -o yaml",
    )


def _rebooting(situation: Situation) -> str:
    """Nodes that reboot, and are not late."""
    return ", ".join(node for node, reboot in situation.reboots.items() if not reboot.overdue)


def _in_trouble(volume: Body, node: str, rebooting: str) -> Cause:
    """A volume is degraded while a node with one of its replicas reboots; faulted, it has none at all."""
    robustness = text(volume, "status", "robustness")
    patient = bool(rebooting) and robustness == "degraded"
    condition = condition_of(volume, "Scheduled")
    why = f": {condition.get('message')}" if condition.get("status") == "False" and condition.get("message") else ""
    name = ref_of(volume).name
    return Cause(
        object=str(ref_of(volume)),
        what=f"is {robustness}{_workload(volume)}{why}",
        node=node,
        since=text(volume, "status", "lastDegradedAt"),
        remedy=f"wait; its replica returns when {rebooting} has rebooted"
        if patient
        else "free disk space for its replicas, or recover the node that has them: "
        f"kubectl get replicas.longhorn.io -n longhorn-system -l longhornvolume={name}",
        patient=patient,
    )


def _single(situation: Situation, volume: Body, node: str) -> Cause:
    return Cause(
        object=str(ref_of(volume)),
        what=f"has only one replica{_workload(volume)}, and is in use on {node}",
        node=node,
        since=situation.since(node),
        remedy="stop the workload that uses it, or add a replica: kubectl patch volumes.longhorn.io -n longhorn-system "
        f"{ref_of(volume).name} --type merge " + """-p '{"spec":{"numberOfReplicas":2}}'""",
    )
