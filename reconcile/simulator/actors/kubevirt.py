"""KubeVirt itself: its upgrade, and the migrations with which it updates virtual machines where it is configured to.

Fields are those of KubeVirt's API. That `workloadUpdateMethods: [LiveMigrate]` migrates every machine is documented;
the pace is not modelled: all are migrated at once.
"""

from __future__ import annotations

from datetime import datetime

from reconcile.probes.rules.live_migration import MigrationTargets, obstacles
from reconcile.simulator.actors.actor_client import KUBEVIRT, NODE, VMI
from reconcile.simulator.actors.actor_context import ActorContext, Timers, conditions, labels_of, name_of, status_of
from reconcile.simulator.actors.machines import OUTDATED, Machines
from reconcile.simulator.actors.simulation_log import SimulationEventType
from renderer.model.ref import Body

NAMESPACE, NAME = "harvester-system", "kubevirt"
ACT = "kubevirt"


class KubeVirt:
    """`upgrade` is called by the work that brings the new version. Machines keep the old launcher until they move or
    stop; with workloadUpdateMethods every one of them is moved at once, and that is a migration storm."""

    def __init__(self, context: ActorContext, machines: Machines) -> None:
        self._context = context
        self._client = context.client.as_manager("virt-operator")
        self._machines = machines
        self._timers = Timers()

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        kubevirt = self._client.find(KUBEVIRT, NAME, NAMESPACE)
        if kubevirt is not None:
            self._client.patch_status(kubevirt, {"observedGeneration": kubevirt["metadata"].get("generation")})
            self._roll_out(kubevirt, now)
            self._update_machines(kubevirt, now)
        return self._client.take_changed()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    def upgrade(self, version: str) -> bool:
        """Asks for the version; whether it is there, or there is no KubeVirt at all."""
        kubevirt = self._client.find(KUBEVIRT, NAME, NAMESPACE)
        if kubevirt is None:
            return True
        if status_of(kubevirt).get("targetKubeVirtVersion") != version:
            self._client.patch_status(kubevirt, {"phase": "Deploying", "targetKubeVirtVersion": version})
        reported = status_of(kubevirt)
        return reported.get("observedKubeVirtVersion") == version and reported.get("phase") == "Deployed"

    def _roll_out(self, kubevirt: Body, now: datetime) -> None:
        status = status_of(kubevirt)
        target = status.get("targetKubeVirtVersion")
        if status.get("phase") != "Deploying":
            return
        if not self._timers.passed(target, self._context.faults.lasts(ACT, self._context.settings.kubevirt)):
            busy = {"type": "Progressing", "status": "True", "reason": "DeploymentInProgress"}
            self._client.patch_status(kubevirt, {"conditions": conditions(kubevirt, now, busy)})
            return
        for instance in self._client.all(VMI):
            self._client.patch(instance, {"metadata": {"labels": {OUTDATED: ""}}})
        idle = {"type": "Progressing", "status": "False", "reason": "AllComponentsReady"}
        self._client.patch_status(
            kubevirt,
            {
                "phase": "Deployed",
                "observedKubeVirtVersion": target,
                "operatorVersion": target,
                "conditions": conditions(kubevirt, now, idle),
            },
        )
        self._context.log.add(now, SimulationEventType.KUBEVIRT_UPGRADED, NAME, detail=str(target))

    def _update_machines(self, kubevirt: Body, now: datetime) -> None:
        outdated = [each for each in self._client.all(VMI) if OUTDATED in labels_of(each)]
        self._client.patch_status(kubevirt, {"outdatedVirtualMachineInstanceWorkloads": len(outdated)})
        strategy = kubevirt["spec"].get("workloadUpdateStrategy") or {}
        if not outdated or "LiveMigrate" not in (strategy.get("workloadUpdateMethods") or ()):
            return
        targets = MigrationTargets(self._client.all(NODE))
        free = [each for each in outdated if all(it.migrates for it in obstacles(each, targets))]
        moved = [name_of(each) for each in free if self._machines.move(each, now, "by KubeVirt's workload updater")]
        if moved:
            self._context.log.add(now, SimulationEventType.MIGRATION_STORM, NAME, detail=", ".join(moved))
