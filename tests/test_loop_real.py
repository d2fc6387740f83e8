"""Whole upgrades on a real API server with real controllers, by the loop under its own service account.

The audit log shows that no call was refused, that every permission is used, and that no Job was made twice.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Thread
from typing import Any

import pytest
import yaml
from controlplane import waiting
from controlplane.audit import AuditEvent
from controlplane.cluster import ControlPlane
from controlplane.waiting import PATIENCE
from support.final_state import FinalState, assert_same, successful_end
from support.installed import objects_of
from support.process_kills import WAYS, KillPlan, Sort, resource_of, run_through_kills, way_of
from support.rbac import READ_IN_TROUBLE
from support.real_upgrade import KINDS, PLAN, USER, RealUpgrade, carried, now, process, run_once, site
from support.rehearsals import ROOT
from support.rendered_plans import MANAGER_IMAGE

from reconcile.cluster.client import Client
from reconcile.cluster.errors import BackendFailed
from reconcile.cluster.protocol import Selection
from reconcile.loop.round import Round
from reconcile.observe.fetching import through_the_proxy
from reconcile.observe.readings import Readings
from reconcile.observe.source import DirectSource
from reconcile.probes.look import KUBELET, Group, ReadFailure
from renderer.model.phase import Fetch, FetchAs
from renderer.model.plan_api import PLAN_API_VERSION, plan_ref
from renderer.model.ref import Body, Ref, ref_of

pytestmark = [pytest.mark.controlplane, pytest.mark.lane("upgrades")]

EXAMPLE = "three-node"
LATE = pytest.mark.full(
    "three nodes on a real API server, and that every permission is used; one node there, killed at each way of "
    "writing, and the journeys on the embedded cluster under the same permissions (test_loop_journeys.py) stand for it"
)
SCRIPT = ("PATCH configmaps", "DELETE configmaps")
"""Writes that no example makes, since its loop does not know its image: `_bring_a_script`."""
STILL = 2.0
"""Seconds in which nobody has written anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is left of an upgrade, and what the loop asked the API server for meanwhile."""

    end: FinalState
    calls: tuple[AuditEvent, ...]


@pytest.fixture(scope="module")
def undisturbed(control_plane: ControlPlane) -> Run:
    """Three nodes, as known from the existing manager, with nothing that goes wrong."""
    control_plane.wipe()
    mark = control_plane.audit_mark()
    with site(control_plane, EXAMPLE) as place:
        _ask_through_the_proxies(place)
        _look_for_what_is_missing(place)
        _check_what_others_have(place)
        _bring_a_script(place)
        before = _enabled_descheduler(control_plane, place)
        carried(place, EXAMPLE)
        _ends_as_known(place, EXAMPLE)
        end = _settled_end(control_plane, place, before)
    return Run(end=end, calls=control_plane.audit(since=mark, user=USER))


def test_one_node_killed_at_each_way_of_writing(wiped_control_plane: ControlPlane) -> None:
    """After or before the write is carried out, in turn; another process takes the lease over. No call is refused, and
    the audit log has no Job created twice."""
    plane, plan = wiped_control_plane, KillPlan(way_of)
    mark = plane.audit_mark()
    with site(plane, "single-node") as place:
        before = tuple(place.everything())
        processes = run_through_kills(place, "single-node", plan)
        _ends_as_known(place, "single-node")
        _settled_end(plane, place, before)
    assert (processes, sorted(plan.kills)) == (len(WAYS) + 1, sorted(WAYS))
    calls = plane.audit(since=mark, user=USER)
    assert _refused(calls) == []
    made = [event.name for event in calls if _creates_a_job(event)]
    assert made
    assert sorted(made) == sorted(set(made))


def test_a_bad_host_is_looked_at_again_and_the_plan_goes_on(wiped_control_plane: ControlPlane) -> None:
    """By the pods' termination messages, which a real server and a real Job controller keep."""
    plane, node = wiped_control_plane, "alfa-1-tink-system"
    mark, held = plane.audit_mark(), list[str]()
    with site(plane, "single-node") as place:
        bad = {**place.world.hosts.report(node, now()), "oem": {"customFile": "truncated"}}
        place.world.hosts.reports[node] = bad

        def on_round(done: Round) -> None:
            waits = [wait.text for wait in done.decision.waits if wait.check] if done.decision else []
            if waits and not held:
                held.extend(waits)
                place.world.hosts.reports.clear()
                asked = {"metadata": {"annotations": {"management.harvesterhci.io/look-at-hosts-again": "now"}}}
                place.admin.patch(PLAN, plan_ref(place.name), asked, field_manager="kubectl")
            if done.decision and done.decision.status.phase == "ISODownloading":
                manager.stop()

        image = {"managerImage": MANAGER_IMAGE}
        manager = process(place, "single-node", on_round, transport=place.transport(), overrides=image)
        worker = Thread(target=manager.run, daemon=True)
        worker.start()
        worker.join(timeout=PATIENCE)
        manager.stop()
        worker.join(timeout=PATIENCE)
        reached = (place.plan() or {})["status"]
    assert any("its host reports oem.customFile is 'truncated'" in text for text in held)
    assert reached["currentPhase"] == "ISODownloading", reached
    calls = plane.audit(since=mark, user=USER)
    assert _refused(calls) == []
    made = [event.name for event in calls if _creates_a_job(event)]
    assert made == [f"{place.name}-host-check-{node}-{number}" for number in (1, 2)]


def _refused(calls: Iterable[AuditEvent]) -> list[str]:
    return [f"{event.verb} {event.uri}" for event in calls if event.code == 403]


@LATE
def test_three_nodes_and_every_permission(undisturbed: Run) -> None:
    """Where the add-on is slow to settle, the loop has begun to look for causes, and has used some of the others."""
    assert _refused(undisturbed.calls) == []
    assert unused(undisturbed.calls) - READ_IN_TROUBLE == set()


@LATE
def test_three_nodes_killed_at_each_way_of_writing(undisturbed: Run, wiped_control_plane: ControlPlane) -> None:
    kills = _kill_at_each(way_of, undisturbed, wiped_control_plane)
    assert sorted(kills) == sorted(WAYS)


@pytest.mark.full(
    "kills at a write to each resource on a real API server; one node, killed there at each of the six ways of "
    "writing, and kills at every single write on the embedded cluster (test_loop_crashes.py) stand for it"
)
def test_killed_at_a_write_to_each_resource(undisturbed: Run, wiped_control_plane: ControlPlane) -> None:
    kills = _kill_at_each(resource_of, undisturbed, wiped_control_plane)
    assert sorted(kills) == sorted({_write(event) for event in undisturbed.calls} - {"", *SCRIPT})


def _kill_at_each(sort: Sort, undisturbed: Run, plane: ControlPlane) -> Iterable[str]:
    """Where it was killed. The end is as undisturbed, and the audit log has no Job created twice."""
    plan = KillPlan(sort)
    mark = plane.audit_mark()
    with site(plane, EXAMPLE) as place:
        before = _enabled_descheduler(plane, place)
        processes = run_through_kills(place, EXAMPLE, plan)
        end = _settled_end(plane, place, before)
    assert processes == len(plan.kills) + 1
    made = [event.name for event in plane.audit(since=mark, user=USER) if _creates_a_job(event)]
    assert sorted(made) == sorted(event.name for event in undisturbed.calls if _creates_a_job(event))
    assert_same(end, undisturbed.end)
    return plan.kills


def _look_for_what_is_missing(place: RealUpgrade) -> None:
    """As the loop reads a Secret that a gate of an overlay names, and looks for a Version that it misses."""
    client = Client(place.transport())
    secret = Ref(api_version="v1", kind="Secret", namespace="fleet-local", name="no-machine-plan")
    assert DirectSource(client, KINDS).get(secret) is None
    versions = Selection(kind=KINDS.row("harvesterhci.io/v1beta1", "Version").kind, namespace="default")
    found = client.list(versions)
    assert found.items == ()
    list(client.watch(versions, resource_version=found.resource_version, window=0))


SELDOM_CHECKED = (
    ("whereabouts.cni.cncf.io/v1alpha1", "IPPool", "kube-system"),
    ("longhorn.io/v1beta2", "InstanceManager", "longhorn-system"),
    ("longhorn.io/v1beta2", "BackingImageManager", "longhorn-system"),
    ("longhorn.io/v1beta2", "Node", "longhorn-system"),
    ("v1", "PersistentVolumeClaim", ""),
)
"""What checks look at where a storage network is set, and in upgrades between other releases."""


def _check_what_others_have(place: RealUpgrade) -> None:
    source = DirectSource(Client(place.transport()), KINDS)
    for api_version, kind, namespace in SELDOM_CHECKED:
        assert source.list(Group(api_version=api_version, kind=kind, namespace=namespace)) == ()


def _bring_a_script(place: RealUpgrade) -> None:
    """As the loop does for the Jobs that look at hosts, where it knows its image."""
    loop, kind = Client(place.transport()), KINDS.row("v1", "ConfigMap").kind
    script = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "host-check", "namespace": "harvester-system"},
    }
    loop.apply(kind, script, field_manager="upgradeplan")
    loop.delete(kind, ref_of(script))


def _ask_through_the_proxies(place: RealUpgrade) -> None:
    """As the loop asks kubelets, and a laptop the repository. They may, and then the server refuses of itself
    to go to a loopback address, and to a Service without endpoints: it takes no loopback address for one."""
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
    found = Readings(Client(place.transport()), KINDS, now, lambda address, port: None).read(KUBELET, [node])["asked"]
    assert isinstance(found, ReadFailure)
    assert "address not allowed" in found.why
    fetch = Fetch(name="x", namespace="harvester-system", service="asked", port=80, path="/x", read_as=FetchAs.LINES)
    with pytest.raises(BackendFailed):
        through_the_proxy(place.admin, KINDS)(fetch)
    for body in (node, service):
        place.admin.delete(KINDS.row("v1", str(body["kind"])).kind, ref_of(body))


_DESCHEDULER = ("-n", "kube-system", "addons.harvesterhci.io", "descheduler")


def _enabled_descheduler(plane: ControlPlane, place: RealUpgrade) -> tuple[Body, ...]:
    """The example's is off already. Answers the cluster as the loop finds it."""
    patch = ("--type", "merge", "-p", '{"spec": {"enabled": true}}')
    plane.kubectl("patch", *_DESCHEDULER, *patch)
    return tuple(place.everything())


@pytest.mark.full("a paused node on a real API server; the journey of the example on the embedded one stands for it")
def test_a_paused_node_and_machines_to_restore(wiped_control_plane: ControlPlane) -> None:
    resumed: list[str] = []

    with site(wiped_control_plane, "paused-node") as place:

        def resume(done: Round) -> None:
            states = done.decision.status.node_states if done.decision else {}
            held = [node for node, entry in states.items() if entry["state"] == "UpgradePaused"]
            if held and not resumed:
                resumed.extend(held)
                patch: Body = {"spec": {"nodeUpgradeOption": {"pauseNodes": []}}}
                ref = Ref(api_version=PLAN_API_VERSION, kind="UpgradePlan", name=place.name)
                place.admin.patch(PLAN, ref, patch, field_manager="operator")

        rounds = carried(place, "paused-node", watch=resume)
        assert resumed == ["echo-2"]
        assert rounds[-1].decision is not None
        assert rounds[-1].decision.status.phase == "Succeeded"
        restored = [fact.subject for fact in place.world.log.events if str(fact.what) == "VMStarted"]
        assert restored


@pytest.mark.full("a failure on a real API server; the journey `failed-pre-drain` on the embedded one stands for it")
def test_a_failed_pre_drain_keeps_the_evidence(wiped_control_plane: ControlPlane) -> None:
    with site(wiped_control_plane, "three-node", fail=["pre-drain"]) as place:
        rounds = carried(place, "three-node", templates=run_once())
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
    with site(wiped_control_plane, "single-node") as place:

        def delete(done: Round) -> None:
            if done.decision and done.decision.status.phase == "ImagePreloading" and place.plan() is not None:
                plan = place.plan()
                if plan is not None and not plan["metadata"].get("deletionTimestamp"):
                    ref = Ref(api_version=PLAN_API_VERSION, kind="UpgradePlan", name=place.name)
                    place.admin.delete(PLAN, ref)

        carried(place, "single-node", watch=delete)
        assert place.plan() is None
        owned = wiped_control_plane.kubectl(
            "get", "jobs,deployments,services,plans.upgrade.cattle.io,virtualmachineimages", "-A",
            "-l", f"management.harvesterhci.io/upgrade-plan={place.name}", "-o", "name",
        ).stdout  # fmt: skip
        assert owned == ""


def _settled_end(plane: ControlPlane, place: RealUpgrade, before: Iterable[Body]) -> FinalState:
    """Once Kubernetes' own controllers and the played ones have done what the end of the plan has left them to do."""
    seen: list[tuple[float, int]] = []

    def is_still() -> bool:
        moment, revision = time.monotonic(), plane.revision
        if not seen or seen[0][1] != revision:
            seen[:] = [(moment, revision)]
        return moment - seen[0][0] > STILL

    waiting.until("the end", is_still)
    return successful_end(before, place.everything(), place.world.log.events)


def _write(event: AuditEvent) -> str:
    """As `process_kills.resource_of` calls it; empty for what is none."""
    if event.verb not in ("patch", "delete", "create", "update") or "dryRun" in event.uri:
        return ""
    if event.resource in ("events", "leases"):
        return ""
    return f"{event.verb.upper()} {event.resource}{event.subresource and '/'}{event.subresource}"


def _creates_a_job(event: AuditEvent) -> bool:
    return event.resource == "jobs" and event.code == 201


def _ends_as_known(place: RealUpgrade, example: str) -> None:
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
    for expected in known.get("conditions", ()):
        assert {key: conditions[expected["type"]][key] for key in expected} == expected
    assert status["borrowed"]
    assert all(loan.get("returned") for loan in status["borrowed"])
    assert not plan["metadata"].get("finalizers")


def unused(calls: Iterable[AuditEvent]) -> set[str]:
    """The permissions of the rendered rules that no call has used."""
    granted = set()
    for document in objects_of("rbac"):
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
    """A rule that nobody would miss must show up as unused. What is read where a plan waits too long is used in
    test_degraded_causes.py."""
    everything: Any = unused([])
    assert "fleet-local: /secrets patch" in everything
