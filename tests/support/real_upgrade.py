"""Support for whole upgrades on a real API server: an example as a site, and the loop as a process runs it.

Harvester, Rancher and the nodes are played, quicker than life; Jobs, Deployments and garbage collection are Kubernetes'
own. The loop has its own service account.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

from controlplane.cluster import ControlPlane
from controlplane.waiting import PATIENCE

from reconcile.cluster.client import Client, connect
from reconcile.cluster.errors import NoSuchKind, NotFound
from reconcile.cluster.exchange import Transport
from reconcile.cluster.kubeconfig import find_access
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.cluster.transport import KubernetesTransport
from reconcile.loop.manager import Manager
from reconcile.loop.overrides import Overrides
from reconcile.loop.round import Round
from reconcile.loop.setup import ManagerConfig, assemble_manager
from reconcile.schemas import packaged_schemas
from reconcile.simulator.actors.fault_options import FaultOptions, KnownTargets, fault_plan_of
from reconcile.simulator.actors.simulation import Simulation
from reconcile.simulator.rehearsal.rehearsal import settings_of
from renderer.assemble import TemplateSet
from renderer.documents import plan_of
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body, Ref
from support.changes import Changes
from support.installed import ACCOUNT, text_of
from support.real_pods import RealPods
from support.rehearsals import inputs_of, template_set
from support.seeding import seed

SPEED = 1500.0
USER = ":".join(("system:serviceaccount", *ACCOUNT))
KINDS = template_set().catalog.kinds
PLAN = KINDS.row(PLAN_API_VERSION, "UpgradePlan").kind


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class RealUpgrade:
    """A cluster with an example's objects in it, and its plan's name. `kubeconfig` is the loop's."""

    admin: Cluster
    kubeconfig: Path
    name: str
    world: Simulation

    def plan(self) -> Body | None:
        try:
            return self.admin.get(PLAN, Ref(api_version=PLAN_API_VERSION, kind="UpgradePlan", name=self.name)).body
        except NotFound:
            return None

    def transport(self) -> Transport:
        """A process's own connections, as the loop's account."""
        return KubernetesTransport(_access(self.kubeconfig), environ={}, now=now)

    def everything(self) -> Iterator[Body]:
        """Every object of every kind that the product knows, with apiVersion and kind."""
        for row in KINDS:
            with suppress(NoSuchKind):
                yield from self.admin.list(Selection(kind=row.kind)).items


def _access(kubeconfig: Path) -> Any:
    return find_access({}, kubeconfig=str(kubeconfig))


def client(kubeconfig: Path) -> Cluster:
    return connect(_access(kubeconfig), environ={}, now=now)


@contextmanager
def site(plane: ControlPlane, example: str, **wishes: list[str]) -> Iterator[RealUpgrade]:
    """The example in the cluster, the played world at work, the plan created."""
    plan = plan_of(inputs_of(example)).body
    with world_of(plane, example, str(plan["metadata"]["name"]), **wishes) as place:
        created = {key: value for key, value in plan.items() if key != "status"}
        place.admin.create(PLAN, created, field_manager="kubectl")
        yield place


@contextmanager
def world_of(plane: ControlPlane, example: str, name: str, **wishes: list[str]) -> Iterator[RealUpgrade]:
    """The same without a plan: one of that name is still to be created."""
    inputs = inputs_of(example)
    admin = client(plane.kubeconfig)
    seed(admin, [source.body for source in inputs.objects], KINDS)
    plane.kubectl("apply", "-f", "-", stdin=text_of("rbac"))
    nodes = tuple(str(s.body["metadata"]["name"]) for s in inputs.objects if s.body["kind"] == "Node")
    faults = fault_plan_of(FaultOptions(**wishes), KnownTargets(nodes=nodes))
    pods = RealPods(plane, client(plane.kubeconfig))
    changes = Changes(plane)
    world = Simulation.of(
        client(plane.kubeconfig),
        KINDS,
        settings_of(inputs),
        faults=faults,
        controllers=(),
        pods=pods,
        version=changes.version,
    )
    account = plane.service_account_kubeconfig(*ACCOUNT)
    with _at_work(world, changes):
        yield RealUpgrade(admin=admin, kubeconfig=account, name=name, world=world)


@contextmanager
def _at_work(world: Simulation, changes: Changes) -> Iterator[None]:
    """The world in a thread of its own, its time passing SPEED times as fast."""
    stop = Event()
    began, start = time.monotonic(), now()

    def work() -> None:
        while not stop.wait(0.2):
            changes.look()
            world.step(start + timedelta(seconds=(time.monotonic() - began) * SPEED))

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=PATIENCE)


def run_once() -> TemplateSet:
    """The packaged templates, with Jobs that are not repeated: between two pods a real Job controller pauses, in all
    for ten minutes."""
    packaged = template_set()
    limits = dict.fromkeys(packaged.catalog.values["backoffLimits"], 0)
    catalog = replace(packaged.catalog, values={**packaged.catalog.values, "backoffLimits": limits})
    return replace(packaged, catalog=catalog)


def process(
    place: RealUpgrade,
    example: str,
    on_round: Callable[[Round], None],
    *,
    transport: Transport,
    identity: str = "test",
    overrides: Overrides | None = None,
    templates: TemplateSet | None = None,
    facts: Mapping[str, Any] | None = None,
) -> Manager:
    """The loop as one process runs it, by default with the packaged templates and the example's facts."""
    return assemble_manager(
        ManagerConfig(
            cluster=Client(transport),
            template_set=templates or template_set(),
            schemas=packaged_schemas(),
            now=now,
            clock=time.monotonic,
            random=random.random,
            dial=lambda address, port: None,
            log=lambda what, fields: None,
            identity=identity,
            lease_namespace=ACCOUNT[0],
            read=lambda fetch: place.world.repo.read(fetch.namespace, fetch.service, fetch.path),
            on_round=on_round,
            known=inputs_of(example).facts if facts is None else facts,
            overrides=overrides or {},
        )
    )


def carried(
    place: RealUpgrade,
    example: str,
    *,
    watch: Callable[[Round], None] = lambda done: None,
    templates: TemplateSet | None = None,
) -> list[Round]:
    """Runs the loop until the plan is over, or for as long as patience lasts."""
    rounds: list[Round] = []

    def on_round(done: Round) -> None:
        rounds.append(done)
        watch(done)
        if done.over:
            manager.stop()

    manager = process(place, example, on_round, transport=place.transport(), templates=templates)
    worker = Thread(target=manager.run, daemon=True)
    worker.start()
    worker.join(timeout=PATIENCE)
    manager.stop()
    worker.join(timeout=PATIENCE)
    assert rounds
    assert rounds[-1].over, [wait.text for wait in rounds[-1].decision.waits] if rounds[-1].decision else rounds[-1]
    return rounds
