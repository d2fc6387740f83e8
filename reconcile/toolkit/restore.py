"""Starts the virtual machines again that were stopped for a node, as `restore-vm` of the upgrade toolkit; what has been
started is taken out of the list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from reconcile.cluster.errors import ClusterError, Conflict, NotFound
from reconcile.cluster.events import EventSeverity
from reconcile.probes.rules.live_migration import runs
from reconcile.toolkit.helper_output import HelperOutput
from reconcile.toolkit.machine_verbs import INSTANCE, MachineVerb, machine_ref, send, unhealthy
from reconcile.toolkit.restore_list import find_list, names_in, take_out
from renderer.errors import ExitCode, problem
from renderer.model.ref import Ref

COMPONENT = "restore-vm"
_EVERY, _AT_MOST = timedelta(seconds=5), timedelta(minutes=30)

Pause = Callable[[timedelta], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedMachines:
    """Those that run again and those that do not; entries that are no names are neither."""

    started: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def restore(output: HelperOutput, pause: Pause) -> StartedMachines:
    """A list or an entry that is not there is nothing to do. Raises `Problems` if KubeVirt does not answer in half an
    hour, and `ClusterError`."""
    found = find_list(output.cluster, output.plan)
    if found is None:
        output.log("ConfigMap not found")
        output.event(EventSeverity.WARNING, "RestoreVMFailed", "ConfigMap not found")
        return StartedMachines()
    names = names_in(found, output.node)
    if not names:
        output.log("No VMs to restore")
        message = f"Restored 0 VM for node {output.node} during upgrade {output.plan}"
        output.event(EventSeverity.NORMAL, "RestoreVMCompleted", message)
        return StartedMachines()
    _await_kubevirt(output, pause)
    return _start_all(output, names)


def _await_kubevirt(output: HelperOutput, pause: Pause) -> None:
    output.log("Waiting for KubeVirt to be ready...")
    end = output.now() + _AT_MOST
    while (error := unhealthy(output.cluster)) is not None:
        output.log(f"KubeVirt health check failed: {error.message}, retry...")
        if output.now() + _EVERY > end:
            message = f"KubeVirt not ready: {error.message}"
            raise problem("KubeVirtNotReady", message, remedy="see the pods of virt-api", exit_code=ExitCode.NO)
        pause(_EVERY)


def _start_all(output: HelperOutput, names: tuple[str, ...]) -> StartedMachines:
    started, failed, wrong = [], [], []
    for name in names:
        namespace, slash, short = name.partition("/")
        if not (namespace and slash and short):
            output.log(f"Invalid VM name: {name}, should be namespace/name")
            wrong.append(name)
        elif _start(output, namespace, short):
            started.append(name)
        else:
            failed.append(name)
    take_out(output.cluster, output.plan, output.node, (*started, *wrong))
    output.event(
        EventSeverity.NORMAL,
        "RestoreVMCompleted",
        f"Restored {len(names)} VMs for node {output.node} during upgrade {output.plan}, "
        f"success: {len(started)}, failed: {len(failed)}",
    )
    return StartedMachines(started=tuple(started), failed=tuple(failed))


def _start(output: HelperOutput, namespace: str, name: str) -> bool:
    """A machine that runs already, since its run strategy starts it, is as good as started."""
    ref = machine_ref(Ref(api_version="", kind="", namespace=namespace, name=name))
    output.log(f"Starting VM {namespace}/{name}...")
    try:
        send(output.cluster, ref, MachineVerb.START)
    except ClusterError as error:
        if isinstance(error, Conflict) and _runs(output, ref):
            output.log(f"VM {namespace}/{name} runs already")
            return True
        output.log(f"Failed to start VM {namespace}/{name}: {error.message}")
        output.event(
            EventSeverity.WARNING,
            "RestoreVMFailed",
            f"Failed to restore VM {namespace}/{name} for node {output.node} during upgrade {output.plan}: "
            f"{error.message}",
        )
        return False
    return True


def _runs(output: HelperOutput, machine: Ref) -> bool:
    ref = Ref(api_version=INSTANCE.api_version, kind=INSTANCE.kind, namespace=machine.namespace, name=machine.name)
    try:
        return runs(output.cluster.get(INSTANCE, ref).body)
    except NotFound:
        return False
