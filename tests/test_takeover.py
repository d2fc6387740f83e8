"""A plan that the Harvester Upgrade Manager has begun: what it has borrowed goes back as its bookkeeping says."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from loop_world import METADATA, NEW_OS, PREFIX, Small, cluster, descheduler, kubevirt, longhorn, node, world
from rendering import Json, plan

from reconcile.decide.ending import FINALIZER
from reconcile.decide.plan import FAILED, SUCCEEDED

POINTER = "/spec/workloadUpdateStrategy/workloadUpdateMethods"
ANNOTATIONS = {f"{PREFIX}replica-replenishment-wait-interval": "450", f"{PREFIX}descheduler-was-enabled": "true"}
OTHERS = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x", "jsonPointers": ["/spec/replicas"]}


def chart() -> Json:
    ours = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "name": "kubevirt", "jsonPointers": [POINTER]}
    return {
        "apiVersion": "management.cattle.io/v3",
        "kind": "ManagedChart",
        "metadata": {"name": "harvester", "namespace": "fleet-local"},
        "spec": {"chart": "harvester", "diff": {"comparePatches": [OTHERS, ours]}},
    }


def hooked() -> Json:
    """The Cluster as the other manager has left it."""
    options = {
        "enabled": True,
        "force": True,
        "ignoreDaemonSets": True,
        "deleteEmptyDirData": True,
        "preDrainHooks": [{"annotation": f"{PREFIX}pre-hook"}],
        "postDrainHooks": [{"annotation": f"{PREFIX}post-hook"}],
    }
    body = cluster(6, kubernetes="v1.35.2-rke2r1")
    body["spec"]["rkeConfig"]["upgradeStrategy"] = {
        "controlPlaneConcurrency": "1",
        "workerConcurrency": "1",
        "controlPlaneDrainOptions": options,
        "workerDrainOptions": copy.deepcopy(options),
    }
    return body


def taken_over(state: str, phase: str = "NodeUpgrading", annotations: Json = ANNOTATIONS, os: str = NEW_OS) -> Small:
    given = plan(version="v1.8.0", annotations=annotations)
    given["metadata"]["finalizers"] = [FINALIZER]
    nodes = [node("n1", os=os), node("n2", os=os)]
    objects = [longhorn("1800"), kubevirt(()), chart(), descheduler(enabled=False), hooked(), *nodes]
    found = world("n1", "n2", given=given, more=objects)
    found.set_status(
        currentPhase=phase,
        previousVersion="v1.7.1",
        version={"isoURL": "https://releases.example.com/h.iso", "isoChecksum": ""},
        isoImageID="harvester-system/up-iso",
        releaseMetadata=METADATA,
        nodeUpgradeStatuses={name: {"state": state} for name in ("n1", "n2")},
        provisionGeneration=6,
    )
    return found


def borrowed(found: Small) -> dict[str, Any]:
    def spec(*where: str) -> Any:
        return found.get(*where)["spec"]

    chart_spec = spec("management.cattle.io/v3", "ManagedChart", "harvester", "fleet-local")
    virt = spec("kubevirt.io/v1", "KubeVirt", "kubevirt", "harvester-system")
    local = spec("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")
    wait = found.get("longhorn.io/v1beta2", "Setting", "replica-replenishment-wait-interval", "longhorn-system")
    return {
        "wait": wait["value"],
        "methods": virt["workloadUpdateStrategy"]["workloadUpdateMethods"],
        "patches": chart_spec["diff"]["comparePatches"],
        "descheduler": spec("harvesterhci.io/v1beta1", "Addon", "descheduler", "kube-system")["enabled"],
        "strategy": local["rkeConfig"].get("upgradeStrategy"),
        "generation": local["rkeConfig"]["provisionGeneration"],
    }


AS_IT_WAS = {
    "wait": "450",
    "methods": ["LiveMigrate"],
    "patches": [OTHERS],
    "descheduler": True,
    "strategy": None,
    "generation": 6,
}


def test_it_goes_back_when_the_plan_has_succeeded() -> None:
    found = taken_over("ImageCleaned", "CleanedUp")
    found.to_its_end()
    assert found.phase == SUCCEEDED
    assert borrowed(found) == AS_IT_WAS
    assert all(loan["returned"] for loan in found.status["borrowed"])


@pytest.mark.parametrize("rounds_before", [0, 1, 3])
def test_it_goes_back_when_the_plan_is_deleted_be_it_before_we_have_looked(rounds_before: int) -> None:
    found = taken_over("ImagePreloaded", os="Harvester v1.7.1")
    for _ in range(rounds_before):
        found.round()
    found.delete_plan()
    found.to_its_end()
    assert found.get("management.harvesterhci.io/v1beta1", "UpgradePlan", "up") is None
    assert borrowed(found) == AS_IT_WAS


def test_without_bookkeeping_nothing_is_guessed() -> None:
    """AC-103: a descheduler that was off stays off, and a wait of 1800 may have been the operator's own."""
    found = taken_over("ImagePreloaded", annotations={}, os="Harvester v1.7.1")
    found.round()
    found.delete_plan()
    found.to_its_end()
    assert borrowed(found) == {**AS_IT_WAS, "wait": "1800", "descheduler": False}


def test_packaged_charts_are_let_go_again_although_another_manager_had_stopped_them() -> None:
    found = taken_over("ImageCleaned", "CleanedUp")
    found.to_its_end()
    assert "Initialize" not in str(found.status["steps"])
    assert found.status["steps"]["NodeUpgrade"]["records"]["UnskipManifests"]["state"] == "Completed"


@pytest.mark.parametrize("state", ["PreDrainFailed", "PostDrainFailed"])
def test_a_node_that_had_failed_fails_the_plan(state: str) -> None:
    """AC-94. The other manager may have gone between the node's state and the plan's."""
    found = taken_over("ImagePreloaded", os="Harvester v1.7.1")
    found.set_status(nodeUpgradeStatuses={"n1": {"state": state, "message": "it had no room"}})
    found.round()
    assert (found.phase, found.condition("Progressing")["message"]) == (FAILED, "it had no room")
    assert found.state("n1") == state
