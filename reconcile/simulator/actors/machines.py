"""KubeVirt's controllers of virtual machines: they start, stop and move, and evacuate a node that is being drained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from reconcile.cluster.errors import Conflict, NoSuchKind, NotFound
from reconcile.simulator.actors.actor_client import MIGRATION, NODE, VM, VMI, VOLUME
from reconcile.simulator.actors.actor_context import (
    ActorContext,
    conditions,
    is_deleted,
    labels_of,
    mark,
    owner_reference,
    status_of,
)
from reconcile.simulator.actors.migratable import why_tied
from reconcile.simulator.actors.placement import DRAIN_TAINT, can_host, is_tainted
from reconcile.simulator.actors.simulation_log import SimulationEventType
from reconcile.simulator.actors.timers import Timers
from renderer.model.ref import Body

ACT = "vm-migration"
OUTDATED = "kubevirt.io/outdatedLauncherImage"
_NODE_NAME = "kubevirt.io/nodeName"
_SCHEDULABLE = "kubevirt.io/schedulable"
_OVER = ("Succeeded", "Failed")


class Machines:
    """Plays VirtualMachines, their instances and migrations, and where their volumes are attached."""

    def __init__(self, context: ActorContext) -> None:
        self._scene = context
        self._stage = context.client.by("virt-controller")
        self._timers = Timers()

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        for machine in self._stage.all(VM):
            self._follow(machine, now)
        for instance in self._stage.all(VMI):
            self._evacuate(instance, now)
        return self._stage.worked()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    # ---------------------------------------------------------------------------------------- what others can ask for

    def on(self, node: str) -> list[Body]:
        """The instances that run on the node."""
        return [each for each in self._stage.all(VMI) if status_of(each).get("nodeName") == node and _runs(each)]

    def move(self, instance: Body, now: datetime, why: str) -> bool:
        """Migrates the instance to another node now; whether there was one."""
        here = status_of(instance).get("nodeName")
        target = self._host(instance["spec"], besides=str(here))
        if target is None:
            return False
        self._stage.change(instance, {"metadata": {"labels": {_NODE_NAME: target, OUTDATED: None}}})
        self._stage.tell(self._again(instance), {"nodeName": target, "evacuationNodeName": None})
        self._attach(instance, target)
        self._scene.log.add(now, SimulationEventType.VM_MOVED, name_of(instance), str(here), why, target)
        return True

    def ask(self, machine: Body, verb: str) -> bool:
        """`start` or `stop`, through the subresource; where nobody serves it, by what it would write."""
        try:
            self._stage.act_on(machine, verb)
        except Conflict:
            return False
        except (NoSuchKind, NotFound):
            self._write_request(machine, verb)
        return True

    def _write_request(self, machine: Body, verb: str) -> None:
        strategy, start = _strategy(machine), verb == "start"
        if strategy in (("Halted",) if start else ("Always", "Once")):
            wanted: dict[str, Any] = {"runStrategy": "Always" if start else "Halted"}
            spec = wanted if "runStrategy" in machine["spec"] else {"running": start}
            self._stage.change(machine, {"spec": spec})
        else:
            self._stage.tell(machine, {"stateChangeRequests": [{"action": verb.capitalize()}]})

    # ------------------------------------------------------------------------------------------------ start and stop

    def _follow(self, machine: Body, now: datetime) -> None:
        metadata = machine["metadata"]
        instance = self._stage.find(VMI, metadata["name"], metadata["namespace"])
        runs = instance is not None and _runs(instance)
        requests = status_of(machine).get("stateChangeRequests") or ()
        action = requests[0]["action"] if requests else ""
        strategy = _strategy(machine)
        if instance is not None and runs and (action == "Stop" or strategy == "Halted" or is_deleted(machine)):
            self._stop(machine, instance, now)
        elif not runs and not is_deleted(machine) and (action == "Start" or strategy == "Always"):
            self._start(machine, now)
        elif not runs and (action == "Stop" or status_of(machine).get("printableStatus") == "Stopping"):
            self._show(machine, now, "Stopped", ready=False)
        else:
            self._forget(machine)
            if action:
                self._stage.tell(machine, {"stateChangeRequests": None})

    def _stop(self, machine: Body, instance: Body, now: datetime) -> None:
        if not self._timers.passed((machine["metadata"]["uid"], "stop"), self._scene.settings.vm_stop):
            self._stage.tell(machine, {"printableStatus": "Stopping"})
            return
        node = str(status_of(instance).get("nodeName") or "")
        self._stage.remove(instance)
        self._attach(instance, "")
        self._forget(machine)
        self._show(machine, now, "Stopped", ready=False)
        self._scene.log.add(now, SimulationEventType.VM_STOPPED, name_of(machine), node)

    def _start(self, machine: Body, now: datetime) -> None:
        node = self._host(machine["spec"]["template"]["spec"])
        if node is None:
            self._stage.tell(machine, {"printableStatus": "ErrorUnschedulable"})
            return
        if not self._timers.passed((machine["metadata"]["uid"], "start"), self._scene.settings.vm_start):
            self._stage.tell(machine, {"printableStatus": "Starting"})
            return
        instance = self._stage.create(_instance(machine, node))
        self._attach(instance, node)
        self._forget(machine)
        self._show(machine, now, "Running", ready=True)
        self._scene.log.add(now, SimulationEventType.VM_STARTED, name_of(machine), node)

    def _show(self, machine: Body, now: datetime, printable: str, *, ready: bool) -> None:
        told = {"type": "Ready", "status": "True" if ready else "False"}
        self._stage.tell(
            machine,
            {
                "printableStatus": printable,
                "ready": ready or None,
                "created": ready or None,
                "stateChangeRequests": None,
                "conditions": conditions(machine, now, told),
            },
        )

    def _forget(self, machine: Body) -> None:
        for what in ("start", "stop"):
            self._timers.forget((machine["metadata"]["uid"], what))

    # -------------------------------------------------------------------------------------------------------- moving

    def _evacuate(self, instance: Body, now: datetime) -> None:
        """One migration after the other until one succeeds, for what can move and stands where a drain is under way."""
        here = self._stage.find(NODE, str(status_of(instance).get("nodeName") or ""))
        strategy = str(instance["spec"].get("evictionStrategy") or "")
        if here is None or not _is_drained(here) or not strategy.startswith("LiveMigrate"):
            return
        if why_tied(instance, self._stage.all(NODE)) is not None:
            return
        migration = self._migration(instance, now)
        key, lasts = self._duration(instance, migration)
        if not self._timers.passed(key, lasts):
            return
        tried = len(self._migrations(instance)) - 1
        if self._scene.faults.fails(ACT, str(instance["metadata"]["name"]), tried):
            self._stage.tell(migration, {"phase": "Failed"})
        elif self.move(instance, now, "evacuated"):
            self._stage.tell(migration, {"phase": "Succeeded"})

    def _duration(self, instance: Body, migration: Body) -> tuple[tuple[str, str], Any]:
        name = str(instance["metadata"]["name"])
        lasts = self._scene.faults.lasts(ACT, self._scene.settings.migration, name)
        return (str(migration["metadata"]["uid"]), "migration"), lasts

    def _migration(self, instance: Body, now: datetime) -> Body:
        migrations = self._migrations(instance)
        current = next((each for each in migrations if status_of(each).get("phase") not in _OVER), None)
        if current is None:
            current = self._stage.create(_migration(instance, len(migrations)))
            current = self._stage.tell(current, {"phase": "Running"})
        return current

    def _migrations(self, instance: Body) -> list[Body]:
        metadata = instance["metadata"]
        found = self._stage.all(MIGRATION, metadata["namespace"])
        return [each for each in found if each["spec"].get("vmiName") == metadata["name"]]

    # ------------------------------------------------------------------------------------------------------- looking

    def _host(self, spec: Any, besides: str = "") -> str | None:
        """The node that fits and runs the fewest machines, then by name."""
        names = [
            str(node["metadata"]["name"])
            for node in self._stage.all(NODE)
            if can_host(node, spec) and labels_of(node).get(_SCHEDULABLE, "true") == "true"
        ]
        load = Counter(status_of(each).get("nodeName") for each in self._stage.all(VMI) if _runs(each))
        others = [name for name in names if name != besides]
        return min(others, key=lambda name: (load[name], name), default=None)

    def _again(self, body: Body) -> Body:
        metadata = body["metadata"]
        found = self._stage.find((body["apiVersion"], body["kind"]), metadata["name"], metadata["namespace"])
        return body if found is None else found

    def _attach(self, instance: Body, node: str) -> None:
        """Its volumes go where it goes."""
        for volume in self._volumes(instance):
            self._stage.change(volume, {"spec": {"nodeID": node}})
            state = {"state": "attached"} if node else {"state": "detached", "robustness": "unknown"}
            robust = {"robustness": "healthy"} if node and status_of(volume).get("robustness") == "unknown" else {}
            self._stage.tell(self._again(volume), {"currentNodeID": node, **state, **robust})

    def _volumes(self, instance: Body) -> Sequence[Body]:
        metadata = instance["metadata"]
        return [
            volume
            for volume in self._stage.all(VOLUME)
            if (used := status_of(volume).get("kubernetesStatus") or {}).get("namespace") == metadata["namespace"]
            and any(each.get("workloadName") == metadata["name"] for each in used.get("workloadsStatus") or ())
        ]


def _runs(instance: Body) -> bool:
    return status_of(instance).get("phase") not in _OVER


def name_of(body: Body) -> str:
    return f"{body['metadata']['namespace']}/{body['metadata']['name']}"


def _is_drained(node: Body) -> bool:
    return is_tainted(node, DRAIN_TAINT) or bool((node.get("spec") or {}).get("unschedulable"))


def _strategy(machine: Body) -> str:
    spec = machine["spec"]
    return str(spec.get("runStrategy") or ("Always" if spec.get("running") else "Halted"))


def _instance(machine: Body, node: str) -> Body:
    template, metadata = machine["spec"]["template"], machine["metadata"]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), _NODE_NAME: node}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(machine)],
        },
        "spec": template["spec"],
        "status": {
            "phase": "Running",
            "nodeName": node,
            "conditions": [{"type": type_, "status": "True"} for type_ in ("Ready", "LiveMigratable")],
        },
    }


def _migration(instance: Body, number: int) -> Body:
    metadata = instance["metadata"]
    name = f"kubevirt-evacuation-{mark(str(metadata['uid']), str(number))}"
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": {"kubevirt.io/vmi-name": metadata["name"]},
            "ownerReferences": [owner_reference(instance)],
        },
        "spec": {"vmiName": metadata["name"]},
    }
