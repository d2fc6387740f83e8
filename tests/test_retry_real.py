"""A failed upgrade is retried on a real API server: by the command, and each phase to the end of the upgrade."""

from __future__ import annotations

from typing import Any

import pytest
from bench.live import PLANS
from controlplane.cluster import ControlPlane
from support.real_commands import PLAN, CommandSite, SeededCluster
from support.real_upgrade import PLAN as KIND
from support.real_upgrade import carried, run_once, site

from reconcile.simulator.actors.faults import FaultPlan
from reconcile.status.attempt import RETRY, TAKE_BACK
from renderer.model.plan_api import plan_ref

pytestmark = [pytest.mark.controlplane, pytest.mark.lane("upgrades")]

NODE = "charlie-1-tink-system"
TIME = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> SeededCluster:
    return SeededCluster(control_plane)


@pytest.fixture
def failed(cluster: SeededCluster) -> CommandSite:
    """The plan has failed on one node, with the drain hooks on loan."""
    found = cluster.site()
    hooks = {"path": "/spec/rkeConfig/upgradeStrategy", "absent": True, "taken": TIME}
    local = {"apiVersion": "provisioning.cattle.io/v1", "kind": "Cluster", "namespace": "fleet-local", "name": "local"}
    record = {"state": "Failed", "started": TIME, "ended": TIME, "message": f"node {NODE} upgrade failed: no room"}
    progress = {"type": "Progressing", "status": "False", "reason": "Failed", "message": record["message"]}
    image = {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "VirtualMachineImage",
        "metadata": {"name": f"{PLAN}-iso", "namespace": "harvester-system"},
        "spec": {"displayName": PLAN, "sourceType": "download", "url": "https://example.com/h.iso", "backend": "cdi"},
    }
    found.plane.api.create("/apis/harvesterhci.io/v1beta1/namespaces/harvester-system/virtualmachineimages", image)
    found.stands(
        currentPhase="Failed",
        isoImageID=f"{PLAN}-iso",
        conditions=[{**progress, "lastTransitionTime": TIME}],
        nodeUpgradeStatuses={NODE: {"state": "PreDrainFailed"}},
        borrowed=[{"phase": "NodeUpgrade", "step": "Provision", **local, **hooks}],
        steps={"NodeUpgrade": {"records": {f"PreDrain/{NODE}": record}}},
    )
    return found


def noted(found: CommandSite) -> Any:
    return found.plan()["metadata"].get("annotations") or {}


def test_a_retry_asks_and_is_one_patch_of_the_plan(failed: CommandSite) -> None:
    declined = failed.answered("n\n", "retry", "--node", NODE)
    assert declined.returncode == 1
    assert declined.stdout.startswith(f"retry of NodeUpgrade/PreDrain/{NODE}: node {NODE} upgrade failed: no room\n")
    assert RETRY not in noted(failed)
    done = failed.run("retry", "--yes")
    assert done.returncode == 0
    assert f"retry 1 of {PLAN} is requested; to follow it, run: upgradeplan status {PLAN} --watch\n" in done.stdout
    assert noted(failed)[RETRY] == "1"


def test_a_node_that_has_not_failed_is_not_retried(failed: CommandSite) -> None:
    refused = failed.run("retry", "--node", "charlie-2-tink-system", "--yes")
    assert refused.returncode == 1
    assert f"no step of charlie-2-tink-system has failed; failed: {NODE}\n" in refused.stderr
    assert RETRY not in noted(failed)


def test_while_another_plan_is_active_the_command_refuses(failed: CommandSite) -> None:
    other = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan", "metadata": {"name": "next"}}
    failed.plane.api.create(PLANS, {**other, "spec": {"version": "v1.8.0-rc1"}})
    refused = failed.run("retry", PLAN, "--yes")
    assert refused.returncode == 1
    assert f'{PLAN} is not retried: another upgrade "next" is in progress\n' in refused.stderr
    assert RETRY not in noted(failed)


def test_the_ways_out_of_a_failed_plan_are_shown(failed: CommandSite) -> None:
    said = failed.run("explain").stdout
    assert "  way out: retry: runs NodeUpgrade/PreDrain again" in said
    assert said.count("way out: ") == 3
    short = failed.run("status").stdout
    assert f"  ways out: upgradeplan retry {PLAN}; upgradeplan abort {PLAN}; start over\n" in short


def test_a_failed_plan_that_is_aborted_stays_as_a_record(failed: CommandSite) -> None:
    done = failed.run("abort", "--yes")
    assert done.returncode == 0
    assert noted(failed)[TAKE_BACK] == "true"
    assert "deletionTimestamp" not in failed.plan()["metadata"]


@pytest.mark.full("whole upgrades on a real API server; test_retry.py plays each step on the embedded cluster")
@pytest.mark.parametrize(
    ("example", "fault", "phase"),
    [
        ("three-node", "image-import", "ISODownloading"),
        ("single-node", "cluster-upgrade x1", "ClusterUpgrading"),
        ("single-node", "single-node-upgrade x1", "NodeUpgrading"),
        ("three-node", "pre-drain on charlie-1 x1", "NodeUpgrading"),
        ("three-node", "post-drain on charlie-1 x1", "NodeUpgrading"),
    ],
)
def test_an_upgrade_goes_on_from_each_step(
    wiped_control_plane: ControlPlane, example: str, fault: str, phase: str
) -> None:
    """Of those whose Job is ours: a failed Job of a Plan is made again by its controller, and does not end a plan."""
    with site(wiped_control_plane, example, fail=[fault]) as place:
        rounds = carried(place, example, templates=run_once())
        assert rounds[-1].decision is not None
        assert rounds[-1].decision.status.phase == "Failed"
        place.world._context.faults.plan = FaultPlan()  # somebody repairs it
        place.admin.patch(KIND, plan_ref(place.name), {"metadata": {"annotations": {RETRY: "1"}}})
        rounds = carried(place, example, templates=run_once())
        plan = place.plan()
        assert plan is not None
        history = [entry["phase"] for entry in plan["status"]["phaseTransitionTimestamps"]]
        assert (plan["status"]["currentPhase"], history[history.index("Failed") + 1]) == ("Succeeded", phase)
        assert all(loan.get("returned") for loan in plan["status"].get("borrowed", ()))
