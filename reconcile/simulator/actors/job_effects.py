"""The effects of an upgrade's Jobs on the cluster.

Modelled on what the scripts of the Harvester upgrade toolkit are documented to do: what counts is what the loop can
see of it. Not compared with a run of the real scripts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from reconcile.probes.rules.live_migration import MigrationTargets, is_restored, obstacles
from reconcile.simulator.actors.actor_client import (
    CONFIG_MAP,
    KUBEVIRT,
    MANAGED_CHART,
    NODE,
    PROVISIONING_CLUSTER,
    SETTING,
    UPGRADE_PLAN,
    VM,
)
from reconcile.simulator.actors.actor_context import ActorContext, labels_of, name_of, status_of
from reconcile.simulator.actors.hosts import Hosts
from reconcile.simulator.actors.kubevirt import KubeVirt
from reconcile.simulator.actors.machines import Machines
from reconcile.simulator.actors.placement import (
    DRAIN_TAINT,
    is_tainted,
    with_taint,
    without_taint,
)
from reconcile.simulator.actors.simulation_log import SimulationEventType
from reconcile.toolkit.restore_list import joined, list_refs, names_in, new_list
from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body

_COMPONENT = f"{PREFIX}upgrade-component"
_JOB_TYPE = f"{PREFIX}job-type"
_PLAN = f"{PREFIX}upgrade-plan"
_NODE_PLAN_NODE = "upgrade.cattle.io/node"


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One pod's task. `node` is empty for a Job that may run anywhere; `host` is where it does; `pod` is its uid."""

    operation: str
    node: str
    host: str
    plan: str
    job: Body
    pod: str


def _nothing(task: Task, now: datetime) -> None:
    """Leaves no trace."""


def _at_once(_task: Task, _now: datetime) -> bool:
    """There is nothing to wait for."""
    return True


def _silence(_task: Task, _now: datetime) -> str:
    """Says nothing when it ends."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEffect:
    """`do` does what can be done of the work now, as often as it is asked, and says whether all of it is done; `after`
    is what happens once the pod has ended well; `says` is the termination message that it leaves then."""

    do: Callable[[Task, datetime], bool] = _at_once
    after: Callable[[Task, datetime], None] = _nothing
    says: Callable[[Task, datetime], str] = _silence


JobEffectTable = Mapping[str, JobEffect]


def operation_of(body: Body) -> str:
    """The operation that a Job is, or the Jobs of a Plan are: its type or component, else its name."""
    labels = labels_of(body)
    return labels.get(_JOB_TYPE) or labels.get(_COMPONENT) or str(body["metadata"]["name"])


def task_of(job: Body, pod: Body) -> Task:
    labels, spec = labels_of(job), job["spec"]["template"]["spec"]
    return Task(
        operation=operation_of(job),
        node=str(spec.get("nodeName") or labels.get(_NODE_PLAN_NODE) or ""),
        host=str(pod["spec"].get("nodeName") or ""),
        plan=labels.get(_PLAN, ""),
        job=job,
        pod=_uid(pod),
    )


_SYSTEM, _FLEET = "harvester-system", "fleet-local"
_METHODS = "/spec/workloadUpdateStrategy/workloadUpdateMethods"


class UpgradeJobEffects:
    """The works by act, on the machines, hosts and KubeVirt that play beside."""

    def __init__(self, context: ActorContext, hosts: Hosts, machines: Machines, kubevirt: KubeVirt) -> None:
        self._context = context
        self._client = context.client.as_manager("upgrade-toolkit")
        self._hosts = hosts
        self._machines = machines
        self._kubevirt = kubevirt
        self._asked: set[tuple[str, str]] = set()
        self._listed: set[str] = set()

    @property
    def by_operation(self) -> JobEffectTable:
        return {
            "host-check": JobEffect(says=lambda task, now: json.dumps(self._hosts.report(task.node, now))),
            "cluster-upgrade": JobEffect(do=self._upgrade_kubevirt, after=self._upgrade_harvester),
            "pre-drain": JobEffect(do=self._empty),
            "post-drain": JobEffect(do=self._await_kubernetes, after=self._reboot),
            "single-node-upgrade": JobEffect(do=self._stop_all, after=self._upgrade_alone),
            "restore-vm": JobEffect(do=self._restore),
        }

    # ---------------------------------------------------------------------------------------------- cluster-upgrade

    def _upgrade_kubevirt(self, task: Task, now: datetime) -> bool:
        self._deploy_chart()
        return self._kubevirt.upgrade(self._context.settings.kubevirt_version)

    def _deploy_chart(self) -> None:
        """Fleet puts back what differs from the chart, unless it has been configured to leave that alone."""
        chart = self._client.find(MANAGED_CHART, "harvester", _FLEET)
        kubevirt = self._client.find(KUBEVIRT, "kubevirt", _SYSTEM)
        if chart is None or kubevirt is None or _leaves_methods(chart):
            return
        strategy = {"workloadUpdateMethods": ["LiveMigrate"]}
        self._client.as_manager("fleetagent").patch(kubevirt, {"spec": {"workloadUpdateStrategy": strategy}})

    def _upgrade_harvester(self, task: Task, now: datetime) -> None:
        release = self._context.settings.release
        for name in ("harvester-crd", "harvester"):
            chart = self._client.find(MANAGED_CHART, name, _FLEET)
            if chart is not None and release.get("harvesterChart"):
                chart = self._client.patch(chart, {"spec": {"version": release["harvesterChart"], "paused": False}})
                self._client.patch_status(chart, {"observedGeneration": chart["metadata"]["generation"]})
        setting = self._client.find(SETTING, "server-version")
        if setting is not None and release.get("harvester"):
            self._client.patch(setting, {"value": release["harvester"]})
        self._context.log.add(
            now, SimulationEventType.HARVESTER_UPGRADED, "harvester", detail=str(release.get("harvester", ""))
        )

    # ------------------------------------------------------------------------------------- pre-drain and single node

    def _empty(self, task: Task, now: datetime) -> bool:
        """Stops what upstream's detector knows, once it is written down; what can move moves because of the taint."""
        targets = MigrationTargets(self._client.all(NODE))
        tied = [each for each in self._machines.on(task.node) if any(it.detected for it in obstacles(each, targets))]
        self._stop(task, tied)
        node = self._client.find(NODE, task.node)
        if node is not None and not is_tainted(node, DRAIN_TAINT):
            self._client.patch(node, {"spec": {"taints": with_taint(node, DRAIN_TAINT)}})
        return not self._machines.on(task.node)

    def _stop_all(self, task: Task, now: datetime) -> bool:
        self._stop(task, self._machines.on(task.node))
        return not self._machines.on(task.node)

    def _stop(self, task: Task, instances: Iterable[Body]) -> None:
        fresh = [each for each in instances if (_uid(task.job), _uid(each)) not in self._asked]
        if task.pod in self._listed and not fresh:
            return
        self._remember(task, [name_of(each) for each in fresh if is_restored(each)])
        for instance in fresh:
            machine = self._client.find(VM, instance["metadata"]["name"], instance["metadata"]["namespace"])
            if machine is not None:
                self._machines.ask(machine, "stop")
            self._asked.add((_uid(task.job), _uid(instance)))

    def _remember(self, task: Task, names: Iterable[str]) -> None:
        """As upstream's detector: a pod that begins writes what it finds, and one that repeats the Job finds those
        machines off, and forgets them."""
        found = self._restore_list(task)
        before = names_in(found, task.node)
        wanted = joined(before if task.pod in self._listed else (), names)
        if found is None and wanted:
            plan = self._client.find(UPGRADE_PLAN, task.plan) or {"metadata": {"name": task.plan}}
            self._client.create(new_list(plan, task.node, wanted.split(",")))
        elif found is not None and wanted != joined(before, ()):
            self._client.patch(found, {"data": {task.node: wanted}})
        self._listed.add(task.pod)

    def _restore_list(self, task: Task) -> Body | None:
        (ref, *_) = list_refs(task.plan)
        return self._client.find(CONFIG_MAP, ref.name, ref.namespace)

    # ------------------------------------------------------------------------------------------------- after a drain

    def _await_kubernetes(self, task: Task, now: datetime) -> bool:
        node = self._client.find(NODE, task.node)
        expected = self._context.settings.release.get("kubernetes")
        if node is None or (expected and (status_of(node).get("nodeInfo") or {}).get("kubeletVersion") != expected):
            return False
        if is_tainted(node, DRAIN_TAINT):
            self._client.patch(node, {"spec": {"taints": without_taint(node, DRAIN_TAINT) or None}})
        return True

    def _reboot(self, task: Task, now: datetime) -> None:
        """A node that has the operating system already is left alone, as the script does."""
        expected, node = str(self._context.settings.release.get("os", "")), self._client.find(NODE, task.node)
        if node is None or not expected or (status_of(node).get("nodeInfo") or {}).get("osImage") != expected:
            self._hosts.order_reboot(task.node, expected)

    def _upgrade_alone(self, task: Task, now: datetime) -> None:
        """Without Rancher: the Job brings Kubernetes itself, and the Cluster is updated afterwards."""
        version = self._context.settings.release.get("kubernetes")
        node = self._client.find(NODE, task.node)
        cluster = self._client.find(PROVISIONING_CLUSTER, "local", _FLEET)
        if node is not None and version:
            self._client.patch_status(node, {"nodeInfo": {"kubeletVersion": version}})
            self._context.log.add(
                now, SimulationEventType.KUBERNETES_UPGRADED, task.node, task.node, f"{version}, by its own Job"
            )
        if cluster is not None and version:
            self._client.patch(cluster, {"spec": {"kubernetesVersion": version}})
        self._reboot(task, now)

    # ---------------------------------------------------------------------------------------------------- restore-vm

    def _restore(self, task: Task, now: datetime) -> bool:
        for entry in names_in(self._restore_list(task), task.node):
            namespace, _, name = entry.partition("/")
            machine = self._client.find(VM, name, namespace)
            if machine is not None and (_uid(task.job), _uid(machine)) not in self._asked:
                self._asked.add((_uid(task.job), _uid(machine)))
                self._machines.ask(machine, "start")
        return True


def _leaves_methods(chart: Body) -> bool:
    patches = (chart["spec"].get("diff") or {}).get("comparePatches") or ()
    return any(each.get("kind") == "KubeVirt" and _METHODS in (each.get("jsonPointers") or ()) for each in patches)


def _uid(body: Body) -> str:
    return str(body["metadata"]["uid"])
