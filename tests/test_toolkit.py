"""The helpers of an upgrade's Jobs, on the embedded cluster: KubeVirt's start and stop are as its API answers them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from reconcile.cluster.errors import ClusterError
from reconcile.cluster.events import EVENT
from reconcile.cluster.protocol import Selection
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.embedded_client import EmbeddedClient
from reconcile.simulator.apiserver.requests import LoggedRequest, Moment, no_hook
from reconcile.toolkit.detector import COMPONENT as DETECTOR
from reconcile.toolkit.detector import detect
from reconcile.toolkit.helper_output import HelperOutput
from reconcile.toolkit.machine_verbs import HEALTH, VIRTUAL_MACHINE, machine_ref
from reconcile.toolkit.restore import COMPONENT as RESTORE
from reconcile.toolkit.restore import restore
from reconcile.toolkit.restore_list import find_list, list_refs, names_in, new_list
from reconcile.toolkit.version_guard import guard
from renderer.cli.program import run
from renderer.errors import ExitCode, Problems
from renderer.model.ref import Kind, Ref
from renderer.names import detector_name, safe_concat

PLAN = "hvst-upgrade-864fh"
INSTANCE = Kind(
    api_version="kubevirt.io/v1", kind="VirtualMachineInstance", plural="virtualmachineinstances", namespaced=True
)
Object = Mapping[str, Any]
DEVICE: Object = {"domain": {"devices": {"hostDevices": [{"name": "nic", "deviceName": "intel.com/nic"}]}}}


def node(name: str, **labels: str) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": {}}


def machine(name: str, strategy: str = "RerunOnFailure") -> Object:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"runStrategy": strategy, "template": {"spec": {"domain": {"devices": {}}}}},
    }


def instance(
    name: str, spec: Object | None = None, *conditions: Object, on: str = "n1", labels: Object | None = None
) -> Object:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"kubevirt.io/nodeName": on, **(labels or {})},
        },
        "spec": {"evictionStrategy": "LiveMigrateIfPossible", **(spec or {"domain": {"devices": {}}})},
        "status": {"phase": "Running", "nodeName": on, "conditions": list(conditions)},
    }


def upgrade_plan(name: str = PLAN) -> Object:
    return {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": name},
        "spec": {"version": "v1.8.0"},
    }


@dataclass(kw_only=True)
class HelperSite:
    """A cluster with a plan, and what a helper says to its log."""

    cluster: EmbeddedCluster
    client: EmbeddedClient
    clock: SimulatedClock
    lines: list[str] = field(default_factory=list)

    def output(self, component: str = DETECTOR, on: str = "n1", plan: str = PLAN) -> HelperOutput:
        return HelperOutput(
            cluster=self.client,
            component=component,
            node=on,
            plan=plan,
            now=self.clock.now,
            log=self.lines.append,
        )

    def events(self) -> list[str]:
        found = sorted(
            self.client.list(Selection(kind=EVENT)).items, key=lambda body: int(body["metadata"]["resourceVersion"])
        )
        return [f"{body['type']} {body['reason']}: {body['message']}" for body in found]

    def listed(self, on: str = "n1", plan: str = PLAN) -> tuple[str, ...]:
        return names_in(find_list(self.client, plan), on)

    def machine(self, name: str) -> Any:
        ref = machine_ref(Ref(api_version="", kind="", namespace="default", name=name))
        return self.client.get(VIRTUAL_MACHINE, ref).body

    def asked(self, name: str) -> str:
        """What the machine's controller has been asked to do."""
        body = self.machine(name)
        requests = (body.get("status") or {}).get("stateChangeRequests") or [{}]
        return str(requests[0].get("action") or body["spec"]["runStrategy"])


def _version(body: Object) -> int:
    return int(body["metadata"]["resourceVersion"])


def site(*bodies: Object, on_write: Callable[[LoggedRequest, Moment], None] = no_hook, plan: str = PLAN) -> HelperSite:
    clock = SimulatedClock(datetime(2026, 11, 2, 8, tzinfo=UTC))
    cluster = EmbeddedCluster(clock)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "harvester-system"}}
    cluster.seed([namespace, upgrade_plan(plan), node("n1"), node("n2"), *bodies])
    return HelperSite(cluster=cluster, client=cluster.client(on_write=on_write), clock=clock)


# ------------------------------------------------------------------------------------------------------- the detector


def test_what_cannot_be_moved_is_written_down_and_stopped() -> None:
    words = {"type": "LiveMigratable", "status": "False", "message": "cannot migrate VMI: PVC disk is not shared"}
    here = site(
        *(machine(name) for name in ("web", "nic", "disk")),
        instance("web"),
        instance("nic", DEVICE),
        instance("disk", None, words),
        *(machine("away"), instance("away", DEVICE, on="n2")),
    )
    found = detect(here.output(), shutdown=True)
    assert (found.names, found.stopped, found.failed) == (("default/disk", "default/nic"), 2, 0)
    assert here.listed() == ("default/disk", "default/nic")
    assert [here.asked(name) for name in ("nic", "disk", "web", "away")] == [
        "Stop",
        "Stop",
        "RerunOnFailure",
        "RerunOnFailure",
    ]
    assert here.events() == [
        f"Normal RestoreVMConfigMapCreated: ConfigMap harvester-system/{PLAN}-restore-vm created",
        "Normal VMShutdownCompleted: Shutdown completed for 2 VM(s) on node n1, success: 2, failed: 0",
    ]
    assert "default/disk considered non-live migratable: KubeVirt says: " + words["message"] in here.lines
    assert "Non-migratable VM(s): [default/disk default/nic]" in here.lines
    config_map = find_list(here.client, PLAN)
    assert config_map is not None
    (owner,) = config_map["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"]) == ("UpgradePlan", PLAN)
    (event, _) = here.client.list(Selection(kind=EVENT)).items
    assert event["metadata"]["namespace"] == "default"
    assert event["source"] == {"component": "vm-live-migrate-detector", "host": "n1"}
    assert event["involvedObject"]["uid"] == owner["uid"]


def test_without_shutdown_and_without_a_plan_nothing_changes() -> None:
    here = site(machine("nic"), instance("nic", DEVICE))
    found = detect(here.output(plan=""), shutdown=False)
    assert found.names == ("default/nic",)
    assert here.asked("nic") == "RerunOnFailure"
    assert (find_list(here.client, PLAN), here.events()) == (None, [])
    detect(here.output(), shutdown=False)
    assert here.asked("nic") == "RerunOnFailure"
    assert here.events()[-1] == (
        "Normal VMShutdownCompleted: Shutdown completed for 1 VM(s) on node n1, success: 0, failed: 0"
    )


def test_a_second_run_keeps_the_names_of_the_first() -> None:
    """It finds the machines off already."""
    here = site(machine("nic"), instance("nic", DEVICE), machine("later"))
    detect(here.output(), shutdown=True)
    here.client.delete(
        INSTANCE, Ref(api_version=INSTANCE.api_version, kind=INSTANCE.kind, namespace="default", name="nic")
    )
    detect(here.output(), shutdown=True)
    assert here.listed() == ("default/nic",)
    here.cluster.seed([instance("later", DEVICE)])
    detect(here.output(), shutdown=True)
    assert here.listed() == ("default/nic", "default/later")
    assert [text.partition(":")[0] for text in here.events()].count("Normal RestoreVMConfigMapCreated") == 1


def test_two_nodes_have_an_entry_each() -> None:
    here = site(machine("a"), machine("b"), instance("a", DEVICE), instance("b", DEVICE, on="n2"))
    detect(here.output(), shutdown=True)
    detect(here.output(on="n2"), shutdown=True)
    assert (here.listed("n1"), here.listed("n2")) == (("default/a",), ("default/b",))


def test_what_is_paused_or_the_upgrades_own_or_nobodys_is_stopped_and_not_started_again() -> None:
    paused = {"type": "Paused", "status": "True"}
    here = site(
        *(machine("asleep"), machine("repo")),
        instance("asleep", DEVICE, paused),
        instance("repo", DEVICE, labels={"harvesterhci.io/upgrade": PLAN}),
        instance("alone", DEVICE),
    )
    found = detect(here.output(), shutdown=True)
    assert (found.stopped, found.failed) == (2, 1)
    assert here.listed() == ()
    assert [here.asked(name) for name in ("asleep", "repo")] == ["Stop", "Stop"]
    assert here.events()[1] == (
        "Normal VMShutdownFailed: Shutdown failed for VM default/alone on node n1, error: "
        "VirtualMachine default/alone not found"
    )
    assert here.events()[-1].endswith("Shutdown completed for 3 VM(s) on node n1, success: 2, failed: 1")


@pytest.mark.parametrize(
    ("nodes", "labels", "expected"),
    [
        ((), {}, ["default/plain"]),
        (("w",), {"node-role.harvesterhci.io/witness": "true"}, ["default/plain"]),
        (("n2",), {}, []),
    ],
)
def test_on_the_only_node_every_machine_is_stopped(nodes: Sequence[str], labels: Any, expected: list[str]) -> None:
    clock = SimulatedClock(datetime(2026, 11, 2, 8, tzinfo=UTC))
    cluster = EmbeddedCluster(clock)
    cluster.seed([node("n1"), *(node(name, **labels) for name in nodes), machine("plain"), instance("plain")])
    here = HelperSite(cluster=cluster, client=cluster.client(), clock=clock)
    assert list(detect(here.output(plan=""), shutdown=False).names) == expected


def test_where_the_list_cannot_be_written_nothing_is_stopped() -> None:
    here = site(machine("nic"), instance("nic", DEVICE), plan="another")
    with pytest.raises(ClusterError, match="not found"):
        detect(here.output(), shutdown=True)
    assert here.asked("nic") == "RerunOnFailure"


def test_somebody_who_is_quicker_is_no_obstacle() -> None:
    """The list of a first node appears between the look and the creation for the second one."""
    made: list[str] = []

    def other(request: LoggedRequest, moment: Moment) -> None:
        if request.verb == "create" and moment is Moment.BEFORE and request.kind == "ConfigMap" and not made:
            made.append(request.name)
            here.cluster.seed([new_list({"metadata": {"name": PLAN}}, "n2", ["default/other"])])

    here = site(machine("nic"), instance("nic", DEVICE), on_write=other)
    detect(here.output(), shutdown=True)
    assert made
    assert (here.listed("n1"), here.listed("n2")) == (("default/nic",), ("default/other",))


LONG = "hvst-upgrade-" + "x" * 50


def test_a_long_plan_finds_the_list_under_both_names() -> None:
    assert [ref.name for ref in list_refs(LONG)] == [detector_name(LONG, "restore-vm"), safe_concat(LONG, "restore-vm")]
    assert len(list_refs(PLAN)) == 1
    here = site(machine("nic"), instance("nic", DEVICE), plan=LONG)
    other = new_list({"metadata": {"name": LONG}}, "n2", ["default/other"])
    here.cluster.seed([{**other, "metadata": {**other["metadata"], "name": safe_concat(LONG, "restore-vm")}}])
    detect(here.output(plan=LONG), shutdown=True)
    assert (here.listed("n1", LONG), here.listed("n2", LONG)) == (("default/nic",), ("default/other",))


# ------------------------------------------------------------------------------------------------------------ restore


def restored(here: HelperSite, pauses: list[timedelta] | None = None) -> Any:
    def pause(length: timedelta) -> None:
        (pauses if pauses is not None else []).append(length)
        here.clock.advance(length.total_seconds())

    return restore(here.output(RESTORE), pause)


def with_list(*names: str, bodies: Sequence[Object] = ()) -> HelperSite:
    here = site(new_list({"metadata": {"name": PLAN}}, "n1", names), *bodies)
    here.cluster.registry.open(HEALTH)
    return here


def test_what_was_stopped_is_started_and_taken_out_of_the_list() -> None:
    here = with_list("default/nic", "default/disk", bodies=[machine("nic"), machine("disk", "Halted")])
    done = restored(here)
    assert done.started == ("default/nic", "default/disk")
    assert (here.asked("nic"), here.asked("disk")) == ("Start", "Always")
    assert here.listed() == ()
    assert here.events() == [
        f"Normal RestoreVMCompleted: Restored 2 VMs for node n1 during upgrade {PLAN}, success: 2, failed: 0"
    ]
    restored(here)
    assert here.events()[-1] == f"Normal RestoreVMCompleted: Restored 0 VM for node n1 during upgrade {PLAN}"


def test_what_cannot_be_started_stays_listed_and_keeps_none_of_the_others_off() -> None:
    here = with_list("default/gone", "nameless", "default/nic", "/x", bodies=[machine("nic")])
    done = restored(here)
    assert (done.started, done.failed) == (("default/nic",), ("default/gone",))
    assert here.listed() == ("default/gone",)
    assert here.events() == [
        f"Warning RestoreVMFailed: Failed to restore VM default/gone for node n1 during upgrade {PLAN}: "
        "VirtualMachine default/gone not found",
        f"Normal RestoreVMCompleted: Restored 4 VMs for node n1 during upgrade {PLAN}, success: 1, failed: 1",
    ]
    assert "Invalid VM name: nameless, should be namespace/name" in here.lines


def test_a_machine_that_runs_already_is_as_good_as_started() -> None:
    here = with_list("default/eager", bodies=[machine("eager", "Always"), instance("eager", on="n2")])
    assert restored(here).started == ("default/eager",)
    assert here.listed() == ()


def test_a_machine_whose_strategy_starts_it_and_that_is_off_is_not_counted_as_started() -> None:
    here = with_list("default/eager", bodies=[machine("eager", "Always")])
    assert restored(here).failed == ("default/eager",)


@pytest.mark.parametrize("names", [(), ("",), (" ",)])
def test_a_blank_entry_is_nothing_to_do(names: Sequence[str]) -> None:
    here = with_list(*names)
    restored(here)
    assert here.events() == [f"Normal RestoreVMCompleted: Restored 0 VM for node n1 during upgrade {PLAN}"]


def test_no_list_is_told() -> None:
    here = site()
    restored(here)
    assert here.events() == ["Warning RestoreVMFailed: ConfigMap not found"]


def test_kubevirt_is_waited_for_half_an_hour() -> None:
    here = site(new_list({"metadata": {"name": PLAN}}, "n1", ["default/nic"]), machine("nic"))
    pauses: list[timedelta] = []
    with pytest.raises(Problems) as caught:
        restored(here, pauses)
    (found,) = caught.value.problems
    assert (found.reason, caught.value.exit_code) == ("KubeVirtNotReady", ExitCode.NO)
    assert sum(pauses, timedelta()) == timedelta(minutes=30)
    assert here.listed() == ("default/nic",)
    here.cluster.registry.open(HEALTH)
    assert restored(here).started == ("default/nic",)


# ------------------------------------------------------------------------------------------------------ version guard


def versions(current: str, target: str, minimum: str = "") -> Object:
    metadata = {"harvester": target, **({"minUpgradableVersion": minimum} if minimum else {})}
    status = {"previousVersion": current, "releaseMetadata": metadata}
    return {**upgrade_plan(), "status": {key: value for key, value in status.items() if value}}


@pytest.mark.parametrize(
    ("plan", "strict", "minimum", "passes"),
    [
        (versions("v1.2.1", "v1.2.2", "v1.2.1"), True, "", True),
        (versions("v1.2.0", "v1.2.2", "v1.2.1"), True, "", False),
        (versions("v1.2.0", "v1.2.2"), True, "v1.2.1", False),
        (versions("v1.2.0", "v1.2.2", "v1.2.1"), True, "v1.2.0", True),
        (versions("v1.2.2-rc1", "v1.2.2-rc2"), True, "", True),
        (versions("v1.2.2-rc2", "v1.2.2-rc1"), True, "", False),
        (versions("v1.2.1", "f6bc010-dirty"), True, "", True),
        (versions("f6bc010", "v1.2.2"), True, "", False),
        (versions("f6bc010", "v1.2.2"), False, "", True),
    ],
)
def test_versions(plan: Object, strict: bool, minimum: str, passes: bool) -> None:
    assert guard(plan, strict=strict, minimum=minimum).passed is passes


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({}, "release metadata is not available in UpgradePlan status"),
        ({"releaseMetadata": {"harvester": "v1.8.0"}}, "previous version is not available in UpgradePlan status"),
    ],
)
def test_what_the_status_does_not_say_is_an_error(status: Object, says: str) -> None:
    verdict = guard({**upgrade_plan(), "status": status}, strict=True)
    assert (verdict.passed, verdict.reason) == (False, says)


# ------------------------------------------------------------------------------------------------------- command lines


@pytest.mark.parametrize(
    ("words", "status", "says"),
    [
        (("vm-live-migrate-detector",), 1, "usage: upgradeplan vm-live-migrate-detector NODENAME [--shutdown]"),
        (("version-guard", "--strict"), 1, "usage: upgradeplan version-guard UPGRADEPLANNAME [--strict]"),
        (("restore-vm", "--upgrade", PLAN), 1, "--node is required"),
        (("restore-vm", "--node", "n1"), 1, "--upgrade is required"),
        (("version-guard", PLAN, "--strict=perhaps"), 2, "'perhaps' is not true or false"),
        (("restore-vm", "--nodes", "n1"), 2, "unknown option --nodes"),
        (("vm-live-migrate-detector", "n1", "--kubeconfig", "/nowhere"), 1, "/nowhere"),
        (("version-guard", PLAN, "--kubeconfig", "/nowhere"), 1, "/nowhere"),
        (("version-guard", "--strict", PLAN, "--kubeconfig", "/nowhere"), 1, "/nowhere"),
        (("vm-live-migrate-detector", "--shutdown", "n1", "--kubeconfig", "/nowhere"), 1, "/nowhere"),
        (("vm-live-migrate-detector", "n1", "--shutdown=false", "--kubeconfig", "/nowhere"), 1, "/nowhere"),
        (("vm-live-migrate-detector", "n1", "--shutdown=maybe"), 2, "'maybe' is not true or false"),
        (("vm-live-migrate-detector", "-shutdown", "-upgrade=x", "-kubeconfig", "/nowhere", "n1"), 1, "/nowhere"),
        (("restore-vm", "-node", "n1", "-upgrade", PLAN, "-kubeconfig=/nowhere"), 1, "/nowhere"),
        (("version-guard", "-strict=perhaps", PLAN), 2, "'perhaps' is not true or false"),
    ],
)
def test_a_wrong_call_says_so(
    words: tuple[str, ...], status: int, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["upgradeplan", *words]) == status
    assert says in capsys.readouterr().err
