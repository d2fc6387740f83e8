"""The situation in which causes are looked for, and a cause that was found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from reconcile.decide.decision import Wait
from reconcile.objects import NODE_PLAN_LABEL, PLAN_LABEL, label
from reconcile.probes.look import Group, Look, ReadFailure
from reconcile.status.times import time_text
from renderer.context.facts import node_of_machine
from renderer.model.node_state import NodeStates
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of

NODES = Group(api_version="v1", kind="Node")
PODS = Group(api_version="v1", kind="Pod")
BUDGETS = Group(api_version="policy/v1", kind="PodDisruptionBudget")
VIRTUAL_MACHINES = Group(api_version="kubevirt.io/v1", kind="VirtualMachineInstance")
MIGRATIONS = Group(api_version="kubevirt.io/v1", kind="VirtualMachineInstanceMigration")
VOLUMES = Group(api_version="longhorn.io/v1beta2", kind="Volume", namespace="longhorn-system")
REPLICAS = Group(api_version="longhorn.io/v1beta2", kind="Replica", namespace="longhorn-system")
ENGINES = Group(api_version="longhorn.io/v1beta2", kind="Engine", namespace="longhorn-system")
MACHINES = Group(api_version="cluster.x-k8s.io/v1beta1", kind="Machine", namespace="fleet-local")
CLUSTERS = Group(api_version="cluster.x-k8s.io/v1beta1", kind="Cluster", namespace="fleet-local")
PROVISIONING_CLUSTERS = Group(api_version="provisioning.cattle.io/v1", kind="Cluster", namespace="fleet-local")
MACHINE_PLANS = Group(api_version="v1", kind="Secret", namespace="fleet-local")
IMAGES = Group(api_version="harvesterhci.io/v1beta1", kind="VirtualMachineImage", namespace="harvester-system")
DATA_VOLUMES = Group(api_version="cdi.kubevirt.io/v1beta1", kind="DataVolume", namespace="harvester-system")
JOBS = tuple(
    Group(api_version="batch/v1", kind="Job", namespace=namespace)
    for namespace in ("harvester-system", "cattle-system")
)
"""The Jobs of upgrades: those that a plan makes, and those of the system-upgrade-controller."""
NODE_PLANS = Group(api_version="upgrade.cattle.io/v1", kind="Plan", namespace="cattle-system")

RANCHER = "check what Rancher reports: kubectl get clusters.provisioning.cattle.io -n fleet-local local -o yaml"
"""The remedy where Rancher does not ask."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """`object` is what blocks, `what` how, `since` when it began (empty if unknown), `remedy` the command, or
    the sentence, that helps. `patient`: it resolves itself without action.

    `about` is the object by kind, namespace and name, whatever people call it. `id`, `title`, `docs` and `restart` are
    those of the known cause; empty for what stands in no file."""

    object: str
    what: str
    remedy: str
    node: str = ""
    since: str = ""
    patient: bool = False
    about: str = ""
    id: str = ""
    title: str = ""
    docs: str = ""
    restart: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedReboot:
    """The expected return of a node: with this OS, and another boot than `boot`. `overdue`: it takes too long."""

    os: str
    boot: str
    overdue: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Departure:
    """The objects that a plan waits for while it is being deleted."""

    objects: Mapping[Ref, Body | ReadFailure | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictingObject:
    """An object that the plan has to create and that is there already. `holder` is the end of a sentence."""

    body: Body
    holder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """`look` shows the objects around the plan; what could not be read finds nothing.

    `phases` are the names of those that may be under way, none where it is not known. `label` is the key of the label
    by which objects name the plan. `nodes` are those of the upgrade, `paused`
    those that a step is held for, `reboots` those that are waited for to come back, `held_up` those that wait for
    others to be well. `gone` are objects that a step under way has made and waits for and that are not there any more,
    with the time when they were made; `attempt` is which one this is, 0 for the first. `refused` is what the API server
    said to the last writes if it refused them, `conflicts` are the objects for which it did because they are somebody
    else's. `leaving` is None for a plan that is not being deleted. `former` is what attempts before this one have made:
    history that is kept as evidence.
    """

    plan: str
    waits: tuple[Wait, ...]
    states: Mapping[str, str]
    node_states: NodeStates
    now: datetime
    look: Look
    phases: tuple[str, ...] = ()
    label: str = PLAN_LABEL
    nodes: tuple[str, ...] = ()
    paused: tuple[str, ...] = ()
    reboots: Mapping[str, ExpectedReboot] = field(default_factory=dict)
    held_up: tuple[str, ...] = ()
    gone: Mapping[Ref, datetime] = field(default_factory=dict)
    attempt: int = 0
    refused: str = ""
    conflicts: Mapping[Ref, ConflictingObject] = field(default_factory=dict)
    leaving: Departure | None = None
    former: frozenset[Ref] = frozenset()

    def all(self, *groups: Group) -> tuple[Body, ...]:
        return tuple(body for group in groups for body in listed(self.look, group))

    def named(self, kind: str) -> set[Ref]:
        """Objects of a kind that something waits for."""
        return {ref for wait in self.waits for ref in wait.refs if ref.kind == kind}

    def ours(self, *groups: Group) -> Iterator[Body]:
        """Objects that the plan made, or that it waits for."""
        return filter(self.is_ours, self.all(*groups))

    def is_ours(self, body: Body) -> bool:
        """True for an object that the plan made for this attempt, or that it waits for."""
        ref = ref_of(body)
        if ref in self.named(ref.kind):
            return True
        return label(body, self.label) == self.plan and not self._is_former(ref, body)

    def _is_former(self, ref: Ref, body: Body) -> bool:
        """True for what an attempt before this one has made, and for the Jobs of its Plans."""
        of = label(body, NODE_PLAN_LABEL)
        return bool(self.former) and (ref in self.former or any(it.name == of for it in self.former))

    @property
    def busy(self) -> tuple[str, ...]:
        """Nodes whose upgrade is under way: those that are cordoned while the plan waits for them, and by state."""
        waited = {wait.node for wait in self.waits if wait.node}
        cordoned = {ref_of(n).name for n in self.all(NODES) if look_up(n, ("spec", "unschedulable")) is True}
        return tuple(sorted(self.out_of_service | (cordoned & waited)))

    @property
    def out_of_service(self) -> set[str]:
        """Nodes whose upgrade is under way by their state."""
        return {node for node, state in self.states.items() if self.node_states.is_out_of_service(state)}

    @property
    def upgraded(self) -> set[str]:
        """Nodes that have the new release by their state."""
        return {node for node, state in self.states.items() if self.node_states.is_upgraded(state)}

    def since(self, node: str) -> str:
        """Since when the node is waited for."""
        times = [wait.since for wait in self.waits if wait.node == node and wait.since]
        return time_text(min(times)) if times else ""

    def machine(self, node: str) -> str:
        """The Machine that the node belongs to; empty if there is none."""
        refer = (ref_of(m).name for m in self.all(MACHINES) if node_of_machine(m) == node)
        return next(refer, "")


def listed(look: Look, group: Group) -> tuple[Body, ...]:
    """The objects of a kind. One that could not be read has none."""
    found = look.list(group)
    return () if isinstance(found, ReadFailure) else tuple(map(partial(_typed, group), found))


def _typed(group: Group, body: Body) -> Body:
    """Items of a list need not repeat what the list is of."""
    return body if "kind" in body else {"apiVersion": group.api_version, "kind": group.kind, **body}


def is_for_rancher(wait: Wait) -> bool:
    """True if the wait is for what Rancher asks in a machine-plan Secret."""
    return any(ref.kind == "Secret" and ref.namespace == MACHINE_PLANS.namespace for ref in wait.refs)


def mapping(value: Any, *path: str | int) -> Mapping[str, Any]:
    """The mapping at the path; an empty one if there is none."""
    found = look_up(value, path)
    return found if isinstance(found, Mapping) else {}


def entries(value: Any, *path: str | int) -> tuple[Mapping[str, Any], ...]:
    """The mappings of a list at the path."""
    found = look_up(value, path)
    return tuple(i for i in found if isinstance(i, Mapping)) if isinstance(found, (list, tuple)) else ()


def text(value: Any, *path: str | int) -> str:
    """The scalar at the path as text; empty if there is none."""
    found = look_up(value, path)
    return str(found) if isinstance(found, (str, int, float)) else ""


def kubectl(verb: str, ref: Ref) -> str:
    """The command about one object, whatever else is called as its kind is."""
    group = ref.api_version.rpartition("/")[0]
    kind = ".".join(part for part in (ref.kind.lower(), group) if part)
    return " ".join(part for part in ("kubectl", verb, kind, ref.namespace and f"-n {ref.namespace}", ref.name) if part)


def condition_of(body: Body, kind: str) -> Mapping[str, Any]:
    """A condition with its times; empty where it is not there."""
    return next((item for item in entries(body, "status", "conditions") if item.get("type") == kind), {})


def refused_in(plan: Body) -> str:
    """The answer of the API server to the last writes of an UpgradePlan; empty if it refused none."""
    degraded = condition_of(plan, "Degraded")
    is_refused = (degraded.get("status"), degraded.get("reason")) == ("True", "ReconcileError")
    return text(degraded, "message") if is_refused else ""
