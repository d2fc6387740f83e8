"""Derives the situation of an upgrade from its object alone: files have no decision, and the built-in upgrade has no
plan. It is said to wait for its nodes, for Rancher, and for its own objects; whatever it waits for takes too long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

from reconcile.decide.decision import Wait
from reconcile.diagnosis.situation import (
    JOBS,
    MACHINES,
    NODE_PLANS,
    NODES,
    Situation,
    condition_of,
    entries,
    listed,
    mapping,
    refused_in,
    text,
)
from reconcile.objects import PLAN_LABEL, label, node_name
from reconcile.probes.look import Group, Look, ReadFailure
from reconcile.status.plan import SUCCEEDED, TERMINAL
from reconcile.status.plan_body import status_of
from reconcile.status.times import time_of
from renderer.catalog.built_in_upgrade import BuiltInUpgrade, UpgradeState
from renderer.catalog.load import Catalog
from renderer.context.facts import node_of_machine
from renderer.model.phase import Deletion, Phase
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body, Ref, ref_of

PLANS = Group(api_version=PLAN_API_VERSION, kind="UpgradePlan")
UPGRADES = Group(api_version="harvesterhci.io/v1beta1", kind="Upgrade", namespace="harvester-system")
_STATE, _LATEST = "harvesterhci.io/upgradeState", "harvesterhci.io/latestUpgrade"
_UPGRADE, _NODE = "harvesterhci.io/upgrade", "harvesterhci.io/node"
_FAILED = "Failed"

_OF_DELETION: Mapping[Deletion, tuple[str, str]] = {
    Deletion.FREE: ("allowed", "delete the plan, repair, and create it again: kubectl delete upgradeplan {name}"),
    Deletion.CAREFUL: (
        "afterSupportBundle",
        "create a support bundle first; then set the annotation management.harvesterhci.io/allow-deletion, delete the "
        "plan, and create it again",
    ),
    Deletion.FORBIDDEN: (
        "notAllowed",
        "the cluster is half upgraded: wait or repair; what waits goes on automatically",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeSubject:
    """An upgrade by its object: an UpgradePlan, or an Upgrade of the built-in upgrade. `phases` are those of the
    catalogue that do what it does now; `states` are its nodes' as a plan has them, `shown` as it has them itself."""

    body: Body
    state: str
    phases: tuple[Phase, ...]
    step: str
    restart: str
    how: str
    label: str
    states: Mapping[str, str]
    shown: Mapping[str, tuple[str, str]]
    works: tuple[Group, ...] = ()
    waited: tuple[Ref, ...] = ()
    since: datetime | None = None
    is_over: bool = False

    @property
    def name(self) -> str:
        return ref_of(self.body).name

    @property
    def created(self) -> str:
        return text(self.body, "metadata", "creationTimestamp")

    @property
    def version(self) -> str:
        return text(self.body, "spec", "version")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrades:
    """The upgrades that can be seen, those that have not ended first, then the newest."""

    all: tuple[UpgradeSubject, ...] = field(default=())

    def named(self, name: str | None) -> UpgradeSubject | None:
        """The one of this name; without one, the first."""
        return next((item for item in self.all if name in (None, item.name)), None)


def upgrades_in(look: Look, catalog: Catalog, known: BuiltInUpgrade) -> Upgrades:
    """All UpgradePlans and Upgrades."""
    plans = (_of_plan(body, catalog) for body in listed(look, PLANS))
    upgrades = (_of_upgrade(body, catalog, known) for body in listed(look, UPGRADES))
    newest = sorted(
        [*plans, *upgrades], key=lambda item: text(item.body, "metadata", "creationTimestamp"), reverse=True
    )
    return Upgrades(all=tuple(sorted(newest, key=lambda item: item.is_over)))


def situation_of_status(subject: UpgradeSubject | None, catalog: Catalog, look: Look, now: datetime) -> Situation:
    """Without an upgrade it is that of a cluster for which somebody waits."""
    bare = Situation(
        plan=subject.name if subject else "",
        waits=(),
        states=subject.states if subject else {},
        node_states=catalog.node_states,
        now=now,
        look=look,
    )
    waits = tuple(_waits(subject, bare)) if subject else (Wait(text="the cluster", slow=True),)
    return Situation(
        plan=bare.plan,
        waits=waits,
        states=bare.states,
        node_states=bare.node_states,
        now=now,
        look=look,
        phases=tuple(phase.name for phase in subject.phases) if subject else (),
        label=subject.label if subject else PLAN_LABEL,
        nodes=tuple(ref_of(node).name for node in bare.all(NODES)),
        refused=refused_in(subject.body) if subject and subject.label == PLAN_LABEL else "",
        former=_former(subject),
    )


def _former(subject: UpgradeSubject | None) -> frozenset[Ref]:
    """The objects that earlier attempts of a plan have made; none where its record cannot be read."""
    if subject and subject.label == PLAN_LABEL:
        with suppress(KeyError, ValueError, TypeError, AttributeError):  # a bundle may hold anything
            return status_of(subject.body).former_objects()
    return frozenset()


def work_of(subject: UpgradeSubject, situation: Situation) -> tuple[str, ...]:
    """The objects that do the work now, as far as they can be seen, those that are done left out."""
    jobs = [job for job in situation.ours(*JOBS) if not _is_complete(job)]
    others = (body for group in subject.works if group.kind != "Job" for body in situation.ours(group))
    return tuple(dict.fromkeys(str(ref_of(body)) for body in (*jobs, *others)))


def seen_at(look: Look, otherwise: datetime) -> datetime:
    """The time of what was collected: the last heartbeat of a node."""
    nodes = look.list(NODES)
    beats = [
        text(item, "lastHeartbeatTime")
        for node in (() if isinstance(nodes, ReadFailure) else nodes)
        for item in entries(node, "status", "conditions")
        if text(item, "lastHeartbeatTime")
    ]
    return time_of(max(beats)) if beats else otherwise


def _of_plan(body: Body, catalog: Catalog) -> UpgradeSubject:
    state = text(body, "status", "currentPhase")
    phases = tuple(item.phase for item in catalog.phases if item.phase.active == state)
    restart, how = _OF_DELETION[phases[0].deletion] if phases else ("", "")
    shown = {
        name: (text(entry, "state"), text(entry, "message"))
        for name, entry in mapping(body, "status", "nodeUpgradeStatuses").items()
    }
    entered = [text(item, "phaseTransitionTimestamp") for item in entries(body, "status", "phaseTransitionTimestamps")]
    return UpgradeSubject(
        body=body,
        state=state,
        phases=phases,
        step=phases[0].name if phases else "",
        restart=restart,
        how=how.format(name=ref_of(body).name),
        label=PLAN_LABEL,
        states={name: state for name, (state, _) in shown.items()},
        shown=shown,
        waited=tuple(_image(text(body, "status", "isoImageID"), "harvester-system")),
        since=time_of(entered[-1]) if entered and entered[-1] else None,
        is_over=state in TERMINAL,
    )


def _of_upgrade(body: Body, catalog: Catalog, known: BuiltInUpgrade) -> UpgradeSubject:
    state = label(body, _STATE)
    row = known.states.get(state) or UpgradeState(name=state, phases=(), step="", restart="", how="")
    shown = {
        name: (text(entry, "state"), ": ".join(filter(None, (text(entry, "reason"), text(entry, "message")))))
        for name, entry in mapping(body, "status", "nodeStatuses").items()
    }
    times = [
        text(item, "lastUpdateTime") for item in entries(body, "status", "conditions") if text(item, "lastUpdateTime")
    ]
    return UpgradeSubject(
        body=body,
        state=state,
        phases=tuple(item.phase for item in catalog.phases if item.phase.name in row.phases),
        step=row.step,
        restart=row.restart,
        how=row.how,
        label=_UPGRADE,
        states={name: known.node_states.get(state, state) for name, (state, _) in shown.items()},
        shown=shown,
        works=tuple(Group(api_version=w.api_version, kind=w.kind, namespace=w.namespace) for w in row.works),
        waited=tuple(_objects_of(body)),
        since=time_of(max(times)) if times else None,
        is_over=state == SUCCEEDED or (state == _FAILED and label(body, _LATEST) != "true"),
    )


def _objects_of(upgrade: Body) -> Iterator[Ref]:
    """The objects of an Upgrade that have no label of it."""
    name = ref_of(upgrade).name
    yield from _image(text(upgrade, "status", "imageID"))
    for what in ("prepare", "cleanup"):
        yield Ref(api_version="upgrade.cattle.io/v1", kind="Plan", namespace="cattle-system", name=f"{name}-{what}")


def _image(reference: str, namespace: str = "") -> Iterator[Ref]:
    """None for an empty reference; one without a namespace is of this one."""
    own, _, name = reference.rpartition("/")
    if name:
        yield Ref(
            api_version="harvesterhci.io/v1beta1", kind="VirtualMachineImage", namespace=own or namespace, name=name
        )


def _waits(subject: UpgradeSubject, bare: Situation) -> Iterator[Wait]:
    plans = [ref_of(p) for p in bare.all(NODE_PLANS) if label(p, subject.label) == subject.name and not _is_complete(p)]
    refs = tuple(dict.fromkeys((*subject.waited, *plans)))
    yield Wait(text=subject.state, since=subject.since, refs=refs, slow=True)
    if not any(phase.lanes for phase in subject.phases) and subject.phases:
        return
    busy = set(_at_work(subject, bare))
    for node, state in subject.states.items():
        if not bare.node_states.is_upgraded(state):
            refs = () if node in busy else _asked_in(bare, node)
            yield Wait(text=f"{node} is {state}", node=node, since=subject.since, refs=refs, slow=True)


def _is_complete(body: Body) -> bool:
    return condition_of(body, "Complete").get("status") == "True"


def _at_work(subject: UpgradeSubject, bare: Situation) -> Iterable[str]:
    """The nodes on which a Job of the upgrade runs: these do not wait for Rancher."""
    for job in bare.all(*JOBS):
        if label(job, subject.label) == subject.name and text(job, "status", "active") not in ("", "0"):
            yield label(job, _NODE) or node_name(job)


def _asked_in(bare: Situation, node: str) -> tuple[Ref, ...]:
    """The machine-plan Secret in which Rancher asks for the node; none where it has no Machine."""
    machines = [ref_of(machine).name for machine in bare.all(MACHINES) if node_of_machine(machine) == node]
    return tuple(
        Ref(api_version="v1", kind="Secret", namespace="fleet-local", name=f"{name}-machine-plan") for name in machines
    )
