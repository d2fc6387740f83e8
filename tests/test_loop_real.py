"""Whole upgrades on a real API server with real controllers, by the loop under its own service account.

Harvester, Rancher and the nodes are played, quicker than life; Jobs, Deployments and garbage collection are Kubernetes'
own. The audit log shows that no call was refused and that every permission is used.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
import yaml
from controlplane.api import ApiError
from controlplane.audit import AuditEvent
from controlplane.cluster import ControlPlane
from theatre import ROOT, inputs_of, workshop

from reconcile.act.schemas import packaged_schemas
from reconcile.actors.cues import Cast, Wishes, script_of
from reconcile.actors.seeding import seed
from reconcile.actors.world import World
from reconcile.cluster.client import Client, connect
from reconcile.cluster.errors import BackendFailed, NotFound
from reconcile.cluster.kubeconfig import find_access
from reconcile.loop.assemble import Ingredients, assemble_manager
from reconcile.loop.manager import Manager
from reconcile.loop.reconciler import API_VERSION, Round
from reconcile.observe.fetching import through_the_proxy
from reconcile.observe.readings import Readings
from reconcile.probes.look import Unseen
from reconcile.rehearse.rehearsal import settings_of
from renderer.documents import plan_of
from renderer.model.phase import Fetch, FetchAs
from renderer.model.ref import Body, Ref, ref_of

pytestmark = pytest.mark.controlplane

SPEED = 300.0
PATIENCE = 240.0
RBAC = ROOT / "templates" / "install" / "rbac.yaml"
USER = "system:serviceaccount:harvester-system:upgradeplan"
KINDS = workshop().catalog.kinds
PLAN = KINDS.row(API_VERSION, "UpgradePlan").kind


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Site:
    """A cluster with an example's objects in it, and its plan's name."""

    admin: Client
    loop: Client
    name: str
    world: World

    def plan(self) -> Body | None:
        try:
            return self.admin.get(PLAN, Ref(api_version=API_VERSION, kind="UpgradePlan", name=self.name)).body
        except NotFound:
            return None


def client(kubeconfig: Path) -> Client:
    return connect(find_access({}, kubeconfig=str(kubeconfig)), environ={}, now=now)


@contextmanager
def site(plane: ControlPlane, example: str, **wishes: list[str]) -> Iterator[Site]:
    """The example in the cluster, the played world at work, the plan created."""
    inputs = inputs_of(example)
    admin = client(plane.kubeconfig)
    seed(admin, [source.body for source in inputs.objects], KINDS)
    plane.kubectl("apply", "-f", str(RBAC))
    nodes = tuple(str(s.body["metadata"]["name"]) for s in inputs.objects if s.body["kind"] == "Node")
    script = script_of(Wishes(**wishes), Cast(nodes=nodes))
    world = World.of(
        client(plane.kubeconfig), KINDS, settings_of(inputs), script=script, end_pod=_end_pod(plane), real=True
    )
    loop = client(plane.service_account_kubeconfig("harvester-system", "upgradeplan"))
    plan = plan_of(inputs).body
    admin.create(PLAN, {key: value for key, value in plan.items() if key != "status"}, field_manager="kubectl")
    with _at_work(world):
        yield Site(admin=admin, loop=loop, name=str(plan["metadata"]["name"]), world=world)


def _end_pod(plane: ControlPlane) -> Callable[[Ref], None]:
    def end(pod: Ref) -> None:
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
        with suppress(ApiError):  # it is gone already
            plane.api.send("DELETE", path, {"gracePeriodSeconds": 0})

    return end


@contextmanager
def _at_work(world: World) -> Iterator[None]:
    """The world in a thread of its own, its time passing SPEED times as fast."""
    stop = Event()
    began, start = time.monotonic(), now()

    def work() -> None:
        while not stop.wait(0.1):
            world.step(start + timedelta(seconds=(time.monotonic() - began) * SPEED))

    thread = Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=20)


def carried(place: Site, example: str, *, watch: Callable[[Round, Manager], None] | None = None) -> list[Round]:
    """Runs the loop until the plan is over, or for as long as patience lasts."""
    rounds: list[Round] = []

    def on_round(done: Round) -> None:
        rounds.append(done)
        if watch is not None:
            watch(done, manager)
        if done.over:
            manager.stop()

    manager = assemble_manager(
        Ingredients(
            cluster=place.loop,
            workshop=workshop(),
            schemas=packaged_schemas(),
            now=now,
            clock=time.monotonic,
            random=random.random,
            dial=lambda address, port: None,
            tell=lambda what, fields: None,
            identity="test",
            lease_namespace="harvester-system",
            read=lambda fetch: place.world.repo.read(fetch.namespace, fetch.service, fetch.path),
            on_round=on_round,
            known=inputs_of(example).facts,
        )
    )
    worker = Thread(target=manager.run, daemon=True)
    worker.start()
    worker.join(timeout=PATIENCE)
    manager.stop()
    worker.join(timeout=30)
    assert rounds
    assert rounds[-1].over, [wait.text for wait in rounds[-1].decision.waits] if rounds[-1].decision else rounds[-1]
    return rounds


def test_three_nodes_and_every_permission(wiped_control_plane: ControlPlane) -> None:
    mark = wiped_control_plane.audit_mark()
    with site(wiped_control_plane, "three-node") as place:
        _ask_through_the_proxies(place)
        _enable_descheduler(wiped_control_plane)
        carried(place, "three-node")
        _ends_as_known(place, "three-node")
        assert _descheduler_is_enabled(wiped_control_plane)
    calls = list(wiped_control_plane.audit(since=mark, user=USER))
    assert [f"{event.verb} {event.uri}" for event in calls if event.code == 403] == []
    assert unused(calls) == set()


def _ask_through_the_proxies(place: Site) -> None:
    """As the loop asks kubelets and the repository. It may, and then the server refuses of itself to go to a loopback
    address, and to a Service that has no endpoints: it takes no loopback address for one. There are no others here."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "asked"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "asked", "namespace": "harvester-system"},
        "spec": {"ports": [{"port": 80}]},
    }
    for body in (node, service):
        place.admin.create(KINDS.row("v1", str(body["kind"])).kind, body)
    found = Readings(place.loop, KINDS, now, lambda address, port: None).kubelets([node])["asked"]
    assert isinstance(found, Unseen)
    assert "address not allowed" in found.why
    fetch = Fetch(name="x", namespace="harvester-system", service="asked", port=80, path="/x", read_as=FetchAs.LINES)
    with pytest.raises(BackendFailed):
        through_the_proxy(place.loop, KINDS)(fetch)
    for body in (node, service):
        place.admin.delete(KINDS.row("v1", str(body["kind"])).kind, ref_of(body))


_DESCHEDULER = ("-n", "kube-system", "addons.harvesterhci.io", "descheduler")


def _enable_descheduler(plane: ControlPlane) -> None:
    """The example's is off already."""
    patch = ("--type", "merge", "-p", '{"spec": {"enabled": true}}')
    plane.kubectl("patch", *_DESCHEDULER, *patch)


def _descheduler_is_enabled(plane: ControlPlane) -> bool:
    return plane.kubectl("get", *_DESCHEDULER, "-o", "jsonpath={.spec.enabled}").stdout == "true"


def test_one_node(wiped_control_plane: ControlPlane) -> None:
    with site(wiped_control_plane, "single-node") as place:
        carried(place, "single-node")
        _ends_as_known(place, "single-node")


def test_a_paused_node_and_machines_to_restore(wiped_control_plane: ControlPlane) -> None:
    resumed: list[str] = []

    with site(wiped_control_plane, "paused-node") as place:

        def resume(done: Round, manager: Manager) -> None:
            states = done.decision.status.node_states if done.decision else {}
            held = [node for node, entry in states.items() if entry["state"] == "UpgradePaused"]
            if held and not resumed:
                resumed.extend(held)
                patch = {"spec": {"nodeUpgradeOption": {"pauseNodes": []}}}
                ref = Ref(api_version=API_VERSION, kind="UpgradePlan", name=place.name)
                place.admin.patch(PLAN, ref, patch, field_manager="operator")

        rounds = carried(place, "paused-node", watch=resume)
        assert resumed == ["echo-2"]
        assert rounds[-1].decision is not None
        assert rounds[-1].decision.status.phase == "Succeeded"
        restored = [fact.subject for fact in place.world.ledger.facts if str(fact.what) == "VMStarted"]
        assert restored


def test_a_failed_pre_drain_keeps_the_evidence(wiped_control_plane: ControlPlane) -> None:
    with site(wiped_control_plane, "three-node", fail=["pre-drain"]) as place:
        rounds = carried(place, "three-node")
        assert rounds[-1].decision is not None
        status = rounds[-1].decision.status
        assert status.phase == "Failed"
        assert (status.condition("Stalled") or {})["status"] == "True"
        jobs = wiped_control_plane.kubectl("-n", "harvester-system", "get", "jobs", "-o", "name").stdout
        assert "pre-drain" in jobs
        cluster = yaml.safe_load(
            wiped_control_plane.kubectl(
                "-n", "fleet-local", "get", "clusters.provisioning.cattle.io", "local", "-o", "yaml"
            ).stdout
        )
        assert "upgradeStrategy" in cluster["spec"]["rkeConfig"]
        plan = place.plan()
        assert plan is not None
        assert plan["metadata"]["finalizers"]


def test_a_deleted_plan_gives_everything_back(wiped_control_plane: ControlPlane) -> None:
    with site(wiped_control_plane, "three-node") as place:

        def delete(done: Round, manager: Manager) -> None:
            if done.decision and done.decision.status.phase == "ImagePreloading" and place.plan() is not None:
                plan = place.plan()
                if plan is not None and not plan["metadata"].get("deletionTimestamp"):
                    ref = Ref(api_version=API_VERSION, kind="UpgradePlan", name=place.name)
                    place.admin.delete(PLAN, ref)

        carried(place, "three-node", watch=delete)
        assert place.plan() is None
        owned = wiped_control_plane.kubectl(
            "get", "jobs,deployments,services,plans.upgrade.cattle.io,virtualmachineimages", "-A",
            "-l", f"management.harvesterhci.io/upgrade-plan={place.name}", "-o", "name",
        ).stdout  # fmt: skip
        assert owned == ""


def _ends_as_known(place: Site, example: str) -> None:
    """As the existing manager's status was at the end of this very upgrade."""
    known = yaml.safe_load((ROOT / "tests" / "data" / "expected-status" / f"{example}.yaml").read_text())
    plan = place.plan()
    assert plan is not None
    status = plan["status"]
    for field in ("currentPhase", "isoImageID", "previousVersion", "provisionGeneration", "singleNode"):
        assert status.get(field) == known.get(field), field
    assert status["nodeUpgradeStatuses"] == known["nodeUpgradeStatuses"]
    assert [entry["phase"] for entry in status["phaseTransitionTimestamps"]] == known["phases"]
    conditions = {entry["type"]: entry for entry in status["conditions"]}
    for wanted in known.get("conditions", ()):
        assert {key: conditions[wanted["type"]][key] for key in wanted} == wanted
    assert all(loan.get("returned") for loan in status.get("borrowed", ()))
    assert not plan["metadata"].get("finalizers")


def unused(calls: list[AuditEvent]) -> set[str]:
    """The permissions of the rendered rules that no call has used."""
    granted = set()
    for document in yaml.safe_load_all(RBAC.read_text()):
        for rule in document.get("rules", ()):
            place = document["metadata"].get("namespace", "cluster")
            granted |= {
                f"{place}: {group}/{resource} {verb}"
                for group in rule["apiGroups"]
                for resource in rule["resources"]
                for verb in rule["verbs"]
            }
    used = {
        use for event in calls for place in (event.namespace or "cluster", "cluster") for use in _uses(event, place)
    }
    return granted - used


def _uses(event: AuditEvent, place: str) -> Iterator[str]:
    """A server-side apply that creates is logged as a patch, and needs the right to create as well."""
    resource = f"{event.resource}/{event.subresource}" if event.subresource else event.resource
    yield f"{place}: {event.group}/{resource} {event.verb}"
    if event.verb == "patch" and event.code == 201:
        yield f"{place}: {event.group}/{resource} create"


def test_the_rules_are_all_told() -> None:
    """A rule that nobody would miss must show up as unused."""
    everything: Any = unused([])
    assert "fleet-local: /secrets patch" in everything
