"""Finds the virtual machines of a node that cannot be moved, writes down which of them to start again, and stops them.

As `vm-live-migrate-detector` of the upgrade toolkit, but that it reads the whole table of obstacles, says why, and only
ever adds to the list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reconcile.cluster.errors import ClusterError, NotFound
from reconcile.cluster.events import EventSeverity
from reconcile.cluster.protocol import Selection
from reconcile.probes.rules.live_migration import MigrationTargets, is_restored, obstacles, runs
from reconcile.probes.rules.virtual_machines import has_machine
from reconcile.toolkit.machine_verbs import INSTANCE, VIRTUAL_MACHINE, MachineVerb, machine_ref, send
from reconcile.toolkit.restore_list import add_names, list_refs
from reconcile.toolkit.telling import Telling, get_plan
from renderer.model.ref import Body, Kind, ref_of

COMPONENT = "vm-live-migrate-detector"
_NODE = Kind(api_version="v1", kind="Node", plural="nodes", namespaced=False)
_NODE_NAME = "kubevirt.io/nodeName"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppedMachines:
    """The machines that cannot be moved, as `namespace/name`, and how stopping them went."""

    names: tuple[str, ...]
    stopped: int = 0
    failed: int = 0


def detect(telling: Telling, *, shutdown: bool) -> StoppedMachines:
    """With a plan the list is written first: where that fails, nothing is stopped. Raises `ClusterError`."""
    instances, targets = _instances(telling), _targets(telling)
    tied = [instance for instance in instances if _is_tied(telling, instance, targets)]
    names = tuple(map(full_name, tied))
    telling.log(f"Non-migratable VM(s): [{' '.join(names)}]")
    if telling.plan:
        _write_down(telling, tied)
    stopped = _stop(telling, tied) if shutdown else 0
    found = StoppedMachines(names=names, stopped=stopped, failed=len(tied) - stopped if shutdown else 0)
    telling.event(
        EventSeverity.NORMAL,
        "VMShutdownCompleted",
        f"Shutdown completed for {len(names)} VM(s) on node {telling.node}, "
        f"success: {found.stopped}, failed: {found.failed}",
    )
    return found


def full_name(body: Body) -> str:
    ref = ref_of(body)
    return f"{ref.namespace}/{ref.name}"


def _instances(telling: Telling) -> Sequence[Body]:
    selection = Selection(kind=INSTANCE, labels=f"{_NODE_NAME}={telling.node}")
    return [instance for instance in telling.cluster.list(selection).items if runs(instance)]


def _targets(telling: Telling) -> MigrationTargets:
    return MigrationTargets(telling.cluster.list(Selection(kind=_NODE)).items)


def _is_tied(telling: Telling, instance: Body, targets: MigrationTargets) -> bool:
    found = obstacles(instance, targets)
    if found:
        why = "; ".join(item.text for item in found)
        telling.log(f"{full_name(instance)} considered non-live migratable: {why}")
    return bool(found)


def _write_down(telling: Telling, tied: Sequence[Body]) -> None:
    names = [full_name(instance) for instance in tied if is_restored(instance) and _can_be_started(telling, instance)]
    telling.log(f"Store vm info to configmap: [{' '.join(names)}]")
    try:
        made = add_names(telling.cluster, get_plan(telling.cluster, telling.plan), telling.node, names)
    except ClusterError as error:
        telling.event(EventSeverity.WARNING, "RestoreVMConfigMapFailed", error.message)
        raise
    if made:
        (ref, *_) = list_refs(telling.plan)
        message = f"ConfigMap {ref.namespace}/{ref.name} created"
        telling.event(EventSeverity.NORMAL, "RestoreVMConfigMapCreated", message)


def _can_be_started(telling: Telling, instance: Body) -> bool:
    """False for an instance that nobody could start again."""
    if has_machine(instance):
        return True
    try:
        telling.cluster.get(VIRTUAL_MACHINE, machine_ref(ref_of(instance)))
    except NotFound:
        return False
    return True


def _stop(telling: Telling, tied: Sequence[Body]) -> int:
    """The number of those that could be stopped. One that could not be is said, and the others are stopped."""
    stopped = 0
    for instance in tied:
        name = full_name(instance)
        try:
            send(telling.cluster, ref_of(instance), MachineVerb.STOP)
        except ClusterError as error:
            message = f"Shutdown failed for VM {name} on node {telling.node}, error: {error.message}"
            telling.event(EventSeverity.NORMAL, "VMShutdownFailed", message)
            telling.log(f"failed to stop VM {name}: {error.message}")
        else:
            telling.log(f"vm {name} was administratively stopped")
            stopped += 1
    return stopped
