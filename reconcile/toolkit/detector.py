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
from reconcile.toolkit.helper_output import HelperOutput, get_plan
from reconcile.toolkit.machine_verbs import INSTANCE, VIRTUAL_MACHINE, MachineVerb, machine_ref, send
from reconcile.toolkit.restore_list import add_names, list_refs
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


def detect(output: HelperOutput, *, shutdown: bool) -> StoppedMachines:
    """With a plan the list is written first: where that fails, nothing is stopped. Raises `ClusterError`."""
    instances, targets = _instances(output), _targets(output)
    tied = [instance for instance in instances if _is_tied(output, instance, targets)]
    names = tuple(map(full_name, tied))
    output.log(f"Non-migratable VM(s): [{' '.join(names)}]")
    if output.plan:
        _write_down(output, tied)
    stopped = _stop(output, tied) if shutdown else 0
    found = StoppedMachines(names=names, stopped=stopped, failed=len(tied) - stopped if shutdown else 0)
    output.event(
        EventSeverity.NORMAL,
        "VMShutdownCompleted",
        f"Shutdown completed for {len(names)} VM(s) on node {output.node}, "
        f"success: {found.stopped}, failed: {found.failed}",
    )
    return found


def full_name(body: Body) -> str:
    ref = ref_of(body)
    return f"{ref.namespace}/{ref.name}"


def _instances(output: HelperOutput) -> Sequence[Body]:
    selection = Selection(kind=INSTANCE, labels=f"{_NODE_NAME}={output.node}")
    return [instance for instance in output.cluster.list(selection).items if runs(instance)]


def _targets(output: HelperOutput) -> MigrationTargets:
    return MigrationTargets(output.cluster.list(Selection(kind=_NODE)).items)


def _is_tied(output: HelperOutput, instance: Body, targets: MigrationTargets) -> bool:
    found = obstacles(instance, targets)
    if found:
        why = "; ".join(item.text for item in found)
        output.log(f"{full_name(instance)} considered non-live migratable: {why}")
    return bool(found)


def _write_down(output: HelperOutput, tied: Sequence[Body]) -> None:
    names = [full_name(instance) for instance in tied if is_restored(instance) and _can_be_started(output, instance)]
    output.log(f"Store vm info to configmap: [{' '.join(names)}]")
    try:
        made = add_names(output.cluster, get_plan(output.cluster, output.plan), output.node, names)
    except ClusterError as error:
        output.event(EventSeverity.WARNING, "RestoreVMConfigMapFailed", error.message)
        raise
    if made:
        (ref, *_) = list_refs(output.plan)
        message = f"ConfigMap {ref.namespace}/{ref.name} created"
        output.event(EventSeverity.NORMAL, "RestoreVMConfigMapCreated", message)


def _can_be_started(output: HelperOutput, instance: Body) -> bool:
    """False for an instance that nobody could start again."""
    if has_machine(instance):
        return True
    try:
        output.cluster.get(VIRTUAL_MACHINE, machine_ref(ref_of(instance)))
    except NotFound:
        return False
    return True


def _stop(output: HelperOutput, tied: Sequence[Body]) -> int:
    """The number of those that could be stopped. A machine that could not be stopped is reported, and the others are
    stopped."""
    stopped = 0
    for instance in tied:
        name = full_name(instance)
        try:
            send(output.cluster, ref_of(instance), MachineVerb.STOP)
        except ClusterError as error:
            message = f"Shutdown failed for VM {name} on node {output.node}, error: {error.message}"
            output.event(EventSeverity.NORMAL, "VMShutdownFailed", message)
            output.log(f"failed to stop VM {name}: {error.message}")
        else:
            output.log(f"vm {name} was administratively stopped")
            stopped += 1
    return stopped
