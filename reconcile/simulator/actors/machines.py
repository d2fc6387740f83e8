"""KubeVirt's controllers of virtual machines: they start, stop and migrate, and evacuate a node under drain.

The back-off between migrations of one evacuation and the five that are kept are those of kubevirt.io/kubevirt,
pkg/virt-controller/watch/migration; the answers of `start` and `stop` those of pkg/virt-api/rest. Target pods,
bandwidth and the limits of parallel migrations are not modelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from reconcile.cluster.errors import Conflict, NoSuchKind, NotFound
from reconcile.probes.rules.live_migration import MigrationTargets, obstacles
from reconcile.simulator.actors.actor_client import MIGRATION, NODE, VM, VMI, VOLUME
from reconcile.simulator.actors.actor_context import (
    ActorContext,
    Timers,
    conditions,
    is_deleted,
    labels_of,
    name_of,
    status_of,
)
from reconcile.simulator.actors.machine_objects import NODE_NAME, instance_of, migration_name, migration_of
from reconcile.simulator.actors.placement import DRAIN_TAINT, can_host, is_tainted
from reconcile.simulator.actors.simulation_log import SimulationEventType
from renderer.model.ref import Body

ACT = "vm-migration"
OUTDATED = "kubevirt.io/outdatedLauncherImage"
_SCHEDULABLE = "kubevirt.io/schedulable"
_OVER = ("Succeeded", "Failed")
_KEPT_MIGRATIONS = 5


class Machines:
    """Plays VirtualMachines, their instances and migrations, and where their volumes are attached."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client.as_manager("virt-controller")
        self._timers = Timers()
        self._tried: Counter[str] = Counter()

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        for machine in self._client.all(VM):
            self._follow(machine, now)
        for instance in self._client.all(VMI):
            self._evacuate(instance, now)
        return self._client.take_changed()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    # ---------------------------------------------------------------------------------------- what others can ask for

    def on(self, node: str) -> list[Body]:
        """The instances that run on the node."""
        return [each for each in self._client.all(VMI) if status_of(each).get("nodeName") == node and _runs(each)]

    def move(self, instance: Body, now: datetime, why: str) -> bool:
        """Migrates the instance to another node now; whether there was one."""
        here = status_of(instance).get("nodeName")
        target = self._host(instance["spec"], besides=str(here))
        if target is None:
            return False
        self._client.patch(instance, {"metadata": {"labels": {NODE_NAME: target, OUTDATED: None}}})
        self._client.patch_status(self._again(instance), {"nodeName": target, "evacuationNodeName": None})
        self._attach(instance, target)
        self._context.log.add(now, SimulationEventType.VM_MOVED, name_of(instance), str(here), why, target)
        return True

    def ask(self, machine: Body, verb: str) -> bool:
        """`start` or `stop`, through the subresource; if it is not served, by what it would write."""
        try:
            self._client.put_subresource(machine, verb)
        except Conflict:
            return False
        except (NoSuchKind, NotFound):
            self._write_request(machine, verb)
        return True

    def _write_request(self, machine: Body, verb: str) -> None:
        strategy, start = _strategy(machine), verb == "start"
        if strategy in (("Halted",) if start else ("Always", "Once")):
            expected: dict[str, Any] = {"runStrategy": "Always" if start else "Halted"}
            spec = expected if "runStrategy" in machine["spec"] else {"running": start}
            self._client.patch(machine, {"spec": spec})
        else:
            self._client.patch_status(machine, {"stateChangeRequests": [{"action": verb.capitalize()}]})

    # ------------------------------------------------------------------------------------------------ start and stop

    def _follow(self, machine: Body, now: datetime) -> None:
        metadata = machine["metadata"]
        instance = self._client.find(VMI, metadata["name"], metadata["namespace"])
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
                self._client.patch_status(machine, {"stateChangeRequests": None})

    def _stop(self, machine: Body, instance: Body, now: datetime) -> None:
        if not self._timers.passed((machine["metadata"]["uid"], "stop"), self._context.settings.vm_stop):
            self._client.patch_status(machine, {"printableStatus": "Stopping"})
            return
        node = str(status_of(instance).get("nodeName") or "")
        self._client.delete(instance)
        self._attach(instance, "")
        self._forget(machine)
        self._show(machine, now, "Stopped", ready=False)
        self._context.log.add(now, SimulationEventType.VM_STOPPED, name_of(machine), node)

    def _start(self, machine: Body, now: datetime) -> None:
        node = self._host(machine["spec"]["template"]["spec"])
        if node is None:
            self._client.patch_status(machine, {"printableStatus": "ErrorUnschedulable"})
            return
        if not self._timers.passed((machine["metadata"]["uid"], "start"), self._context.settings.vm_start):
            self._client.patch_status(machine, {"printableStatus": "Starting"})
            return
        instance = self._client.create(instance_of(machine, node))
        self._attach(instance, node)
        self._forget(machine)
        self._show(machine, now, "Running", ready=True)
        self._context.log.add(now, SimulationEventType.VM_STARTED, name_of(machine), node)

    def _show(self, machine: Body, now: datetime, printable: str, *, ready: bool) -> None:
        reported = {"type": "Ready", "status": "True" if ready else "False"}
        self._client.patch_status(
            machine,
            {
                "printableStatus": printable,
                "ready": ready or None,
                "created": ready or None,
                "stateChangeRequests": None,
                "conditions": conditions(machine, now, reported),
            },
        )

    def _forget(self, machine: Body) -> None:
        for what in ("start", "stop"):
            self._timers.forget((machine["metadata"]["uid"], what))

    # -------------------------------------------------------------------------------------------------------- moving

    def _evacuate(self, instance: Body, now: datetime) -> None:
        """One migration after the other until one succeeds, for what can be migrated from a node under drain."""
        here = self._client.find(NODE, str(status_of(instance).get("nodeName") or ""))
        strategy = str(instance["spec"].get("evictionStrategy") or "")
        if here is None or not _is_left(instance, here) or not strategy.startswith("LiveMigrate"):
            return
        if any(not each.migrates for each in obstacles(instance, MigrationTargets(self._client.all(NODE)))):
            return
        failed = self._failed_migrations(instance)
        migration = self._currentmigration_of(instance, failed)
        lasts = self._context.faults.lasts(ACT, self._context.settings.migration, name_of(instance))
        if not self._timers.passed(migration["metadata"]["uid"], lasts and lasts + _back_off(len(failed))):
            return
        if self._context.faults.fails(ACT, name_of(instance), self._tried[_uid(instance)] - 1):
            self._client.patch_status(migration, {"phase": "Failed"})
        elif self.move(instance, now, "evacuated"):
            self._client.patch_status(migration, {"phase": "Succeeded"})

    def _currentmigration_of(self, instance: Body, failed: Sequence[Body]) -> Body:
        """The one under way, or a new one. KubeVirt keeps five that have ended."""
        made = self._migrations(instance)
        current = next((each for each in made if status_of(each).get("phase") not in _OVER), None)
        if current is not None:
            return current
        for each in failed[: max(0, len(failed) - _KEPT_MIGRATIONS)]:
            self._client.delete(each)
        self._tried[_uid(instance)] += 1
        new = self._client.create(migration_of(instance, self._tried[_uid(instance)]))
        return self._client.patch_status(new, {"phase": "Running"})

    def _failed_migrations(self, instance: Body) -> list[Body]:
        """Those of this evacuation, oldest first."""
        return [each for each in self._migrations(instance) if status_of(each).get("phase") == "Failed"]

    def _migrations(self, instance: Body) -> list[Body]:
        """Those that were made here for the instance, oldest first."""
        namespace = instance["metadata"]["namespace"]
        last = self._tried[_uid(instance)]
        numbers = range(max(1, last - _KEPT_MIGRATIONS - 1), last + 1)
        names = (migration_name(instance, number) for number in numbers)
        found = (self._client.find(MIGRATION, name, namespace) for name in names)
        return [each for each in found if each is not None]

    # ------------------------------------------------------------------------------------------------------- looking

    def _host(self, spec: Any, besides: str = "") -> str | None:
        """The node that fits and runs the fewest machines, then by name."""
        names = [
            str(node["metadata"]["name"])
            for node in self._client.all(NODE)
            if can_host(node, spec) and labels_of(node).get(_SCHEDULABLE, "true") == "true"
        ]
        load = Counter(status_of(each).get("nodeName") for each in self._client.all(VMI) if _runs(each))
        others = [name for name in names if name != besides]
        return min(others, key=lambda name: (load[name], name), default=None)

    def _again(self, body: Body) -> Body:
        metadata = body["metadata"]
        found = self._client.find((body["apiVersion"], body["kind"]), metadata["name"], metadata["namespace"])
        return body if found is None else found

    def _attach(self, instance: Body, node: str) -> None:
        """Its volumes go where it goes."""
        for volume in self._volumes(instance):
            self._client.patch(volume, {"spec": {"nodeID": node}})
            state = {"state": "attached"} if node else {"state": "detached", "robustness": "unknown"}
            robust = {"robustness": "healthy"} if node and status_of(volume).get("robustness") == "unknown" else {}
            self._client.patch_status(self._again(volume), {"currentNodeID": node, **state, **robust})

    def _volumes(self, instance: Body) -> Sequence[Body]:
        metadata = instance["metadata"]
        return [
            volume
            for volume in self._client.all(VOLUME)
            if (used := status_of(volume).get("kubernetesStatus") or {}).get("namespace") == metadata["namespace"]
            and any(each.get("workloadName") == metadata["name"] for each in used.get("workloadsStatus") or ())
        ]


def _runs(instance: Body) -> bool:
    return status_of(instance).get("phase") not in _OVER


def _is_left(instance: Body, node: Body) -> bool:
    """A cordon alone moves nothing: it takes the taint, or the eviction of the instance's pod."""
    return is_tainted(node, DRAIN_TAINT) or status_of(instance).get("evacuationNodeName") == node["metadata"]["name"]


def _back_off(failed: int) -> timedelta:
    """Before the next try: nothing, 20 s, and twice as long after each failure that is still known."""
    return timedelta(seconds=20) * 2 ** (failed - 1) if failed else timedelta(0)


def _uid(body: Body) -> str:
    return str(body["metadata"]["uid"])


def _strategy(machine: Body) -> str:
    spec = machine["spec"]
    return str(spec.get("runStrategy") or ("Always" if spec.get("running") else "Halted"))
