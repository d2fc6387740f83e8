"""A plan that the Harvester Upgrade Manager has begun: what it has borrowed goes back as its bookkeeping says."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from support.rehearsals import START
from support.rendered_plans import Json, plan
from support.small_cluster import (
    METADATA,
    NEW_OS,
    OLD_OS,
    POST,
    POST_HOOK,
    POST_JOB,
    PRE,
    PRE_HOOK,
    PRE_JOB,
    PREFIX,
    Small,
    being_prepared,
    cluster,
    descheduler,
    kubevirt,
    longhorn,
    managed_chart,
    node,
    upgrading,
    waiting_for_rancher,
    world,
)

from reconcile.decide.decision import Wait
from reconcile.decide.ending import FINALIZER
from reconcile.status.plan import FAILED, SUCCEEDED
from reconcile.status.times import time_text
from renderer.model.plan_api import PLAN_API_VERSION, plan_ref

pytestmark = pytest.mark.slow

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


def latched(generation: int = 1) -> Small:
    """A plan that the other manager has blocked and ignores, long after the upgrade that it waited for."""
    found = world("n1", "n2")
    blocked = {"type": "Available", "status": "False", "reason": "ConcurrentUpgradeBlocked", "message": "another"}
    times = {"lastTransitionTime": "2025-01-01T00:00:00Z", "observedGeneration": generation}
    found.set_status(conditions=[{**blocked, **times}])
    return found


def test_a_plan_that_the_other_manager_has_blocked_does_not_begin_by_itself() -> None:
    found = latched()
    found.rounds()
    assert found.phase == ""
    assert "upgradeplan approve up" in found.condition("Degraded")["message"]
    assert found.condition("Available")["reason"] == "ConcurrentUpgradeBlocked"
    found.patch(found.plan, {"spec": {"restoreVM": True}})
    found.rounds()
    assert found.phase == "ISODownloading"


def test_a_plan_that_has_waited_its_turn_here_begins_by_itself() -> None:
    found = world("n1", "n2")
    rival = {**plan("rival", version="v1.8.0")}
    found.create(rival)
    kind = found.scene.deps.kinds.row(PLAN_API_VERSION, "UpgradePlan").kind
    other = found.get(PLAN_API_VERSION, "UpgradePlan", "rival")
    found.patch(other, {"status": {"currentPhase": "ISODownloading"}}, "status")
    found.rounds()
    assert found.condition("Available")["reason"] == "ConcurrentUpgradeBlocked"
    found.scene.cluster.client().delete(kind, plan_ref("rival"))
    found.rounds()
    assert found.phase == "ISODownloading"


def test_a_failed_plan_without_a_history_returns_the_saved_value() -> None:
    found = taken_over("PreDrainFailed")
    found.set_status(currentPhase=FAILED, phaseTransitionTimestamps=None)
    found.rounds()
    setting = found.get("longhorn.io/v1beta2", "Setting", "replica-replenishment-wait-interval", "longhorn-system")
    assert setting["value"] == "450"


def taken_over(state: str, phase: str = "NodeUpgrading", annotations: Json = ANNOTATIONS, os: str = NEW_OS) -> Small:
    given = plan(version="v1.8.0", annotations=annotations)
    nodes = [node("n1", os=os), node("n2", os=os)]
    objects = [longhorn("1800"), kubevirt(()), chart(), descheduler(enabled=False), hooked(), *nodes]
    found = world("n1", "n2", given=given, more=objects)
    found.patch(found.plan, {"metadata": {"finalizers": [FINALIZER]}})
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


def begun_by_us(**spec: Any) -> Small:
    """A plan of ours that has been told to Rancher."""
    own = managed_chart()
    own["spec"]["diff"] = {"comparePatches": [OTHERS]}
    more = [longhorn("450"), kubevirt(["LiveMigrate"]), own, descheduler(enabled=True)]
    return waiting_for_rancher(more=more, **spec)


def noted(found: Small) -> Json:
    annotations = found.plan["metadata"].get("annotations") or {}
    return {key: value for key, value in annotations.items() if key in ANNOTATIONS}


def as_the_other_manager_writes(found: Small) -> None:
    """Its status has the fields that it knows, and no others."""
    found.set_status(steps=None, borrowed=None, waitingSince=None)


def test_the_other_manager_finds_what_we_have_borrowed_where_it_looks() -> None:
    found = begun_by_us()
    assert noted(found) == ANNOTATIONS
    assert (borrowed(found)["wait"], borrowed(found)["descheduler"]) == ("1800", False)


def test_originals_are_noted_before_they_are_overwritten() -> None:
    found = upgrading("n1", "n2", states={}, more=[longhorn("450"), descheduler(enabled=True)])
    found.set_status(currentPhase="ClusterUpgraded")
    found.until(lambda done: f"{PREFIX}replica-replenishment-wait-interval" in noted(found))
    setting = found.get("longhorn.io/v1beta2", "Setting", "replica-replenishment-wait-interval", "longhorn-system")
    assert setting["value"] == "450"
    assert found.status["borrowed"][-1]["value"] == "450"


def test_what_was_higher_or_off_already_is_not_noted() -> None:
    found = waiting_for_rancher(more=[longhorn("3600"), descheduler(enabled=False)])
    assert noted(found) == {}


def test_a_plan_that_went_to_the_other_manager_and_came_back_returns_what_we_had_found() -> None:
    found = begun_by_us()
    as_the_other_manager_writes(found)
    found.rounds()
    found.delete_plan()
    found.to_its_end()
    strategy = borrowed(found)["strategy"]  # that one has no place for it
    assert borrowed(found) == {**AS_IT_WAS, "strategy": strategy}


@pytest.mark.parametrize("end", ["success", "failure"])
def test_what_is_returned_is_noted_no_more(end: str) -> None:
    found = begun_by_us()
    if end == "success":
        found.set_status(currentPhase="CleanedUp")
        found.to_its_end()
    else:
        being_prepared(found)
        found.end_job(PRE_JOB, failed=True, message="no room")
        found.rounds()
        found.end_plan("up-skip-manifest-remove")
        found.rounds()
    assert found.condition("Progressing")["status"] == "False"
    left = {} if end == "success" else {f"{PREFIX}descheduler-was-enabled": "true"}
    assert noted(found) == left  # after a failure the descheduler stays off until somebody decides


def test_a_plan_stays_approved_when_originals_are_noted() -> None:
    found = upgrading("n1", "n2", states={}, more=[longhorn("450"), descheduler(enabled=True)])
    found.set_status(currentPhase="ClusterUpgraded")
    found.approve()
    found.rounds()
    found.end_plan("up-skip-manifest-apply")
    found.rounds()
    assert found.phase == "NodeUpgrading"
    assert noted(found) == ANNOTATIONS


def test_without_bookkeeping_nothing_is_guessed() -> None:
    """A descheduler that was off stays off, and a wait of 1800 may have been the operator's own."""
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
    """The other manager may have gone between the node's state and the plan's."""
    found = taken_over("ImagePreloaded", os="Harvester v1.7.1")
    found.set_status(nodeUpgradeStatuses={"n1": {"state": state, "message": "it had no room"}})
    found.rounds()
    assert (found.phase, found.condition("Progressing")["message"]) == (FAILED, "it had no room")
    assert found.state("n1") == state


# ------------------------------------------------------------------------------------------------- nodes on their way

PENDING = f"{PREFIX}pendingOSImage"
PLAN_LABELS = {f"{PREFIX}upgrade-plan": "up", f"{PREFIX}upgrade-component": "node-upgrade", f"{PREFIX}node": "n1"}


def on_the_way(state: str, *, asked: Sequence[str] = (), os: str = OLD_OS, previous: str = "v1.7.1") -> Small:
    """Rancher has asked, and been answered, for these of its and our annotations."""
    found = taken_over("ImagePreloaded", os=OLD_OS)
    found.set_status(nodeUpgradeStatuses={"n1": {"state": state}}, previousVersion=previous)
    found.reboot("n1", os=os, boot="boot-1")
    for key in asked:
        found.ask("n1", key, f"asked {key.removeprefix(PREFIX)[:8]}" if key in (PRE, POST) else answer_to(key))
    return found


def answer_to(key: str) -> str:
    return {PRE_HOOK: f"asked {PRE[:8]}", POST_HOOK: f"asked {POST[:8]}"}[key]


def other_made(found: Small, body: Json) -> None:
    """The object as the other manager makes it: by an update, and controlled by the plan."""
    owner = {"apiVersion": PLAN_API_VERSION, "kind": "UpgradePlan", "name": "up", "uid": found.plan["metadata"]["uid"]}
    controlled = {**body["metadata"], "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}]}
    kind = found.scene.deps.kinds.row(body["apiVersion"], body["kind"]).kind
    found.scene.cluster.client().create(kind, {**body, "metadata": controlled}, field_manager="manager")


def other_job(found: Small, name: str, *, ended: bool = False, **spec: Any) -> None:
    """With what differs from ours: no backoffLimit of its own, a time to live, another image."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "apply", "image": "toolkit:other"}]}
    metadata = {"name": name, "namespace": "harvester-system", "labels": PLAN_LABELS}
    whole = {"ttlSecondsAfterFinished": 604800, "template": {"spec": pod}, **spec}
    other_made(found, {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": whole})
    if ended:
        found.end_job(name)


def images_of(found: Small) -> dict[str, str]:
    """Name to image: which Jobs are still the other manager's."""
    return {
        job["metadata"]["name"]: job["spec"]["template"]["spec"]["containers"][0]["image"] for job in found.all("Job")
    }


def test_a_job_that_runs_is_watched_to_its_end_and_not_made_again() -> None:
    found = on_the_way("PreDraining", asked=[PRE])
    other_job(found, PRE_JOB)
    assert found.rounds().problems == ()
    assert (found.state("n1"), found.annotation("n1", PRE_HOOK)) == ("PreDraining", None)
    found.end_job(PRE_JOB)
    found.rounds()
    assert (found.state("n1"), found.annotation("n1", PRE_HOOK)) == ("PreDrained", answer_to(PRE_HOOK))
    assert images_of(found) == {PRE_JOB: "toolkit:other"}
    assert found.condition("Degraded")["status"] == "False"


def test_a_job_that_has_failed_meanwhile_fails_the_plan() -> None:
    found = on_the_way("PreDraining", asked=[PRE])
    other_job(found, PRE_JOB)
    found.end_job(PRE_JOB, failed=True, message="no room")
    found.rounds()
    assert found.phase == FAILED
    assert found.annotation("n1", PRE_HOOK) is None


def test_a_node_that_was_held_by_a_suspended_job_goes_on_with_that_job() -> None:
    """The other manager holds a node by suspending its Job."""
    found = on_the_way("UpgradePaused", asked=[PRE])
    found.patch(found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": ["n1"]}}})
    other_job(found, PRE_JOB, suspend=True)
    found.rounds()
    assert (found.state("n1"), found.all("Job")[0]["spec"]["suspend"]) == ("UpgradePaused", True)
    found.patch(found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": []}}})
    found.rounds()
    assert (found.state("n1"), found.all("Job")[0]["spec"]["suspend"]) == ("PreDraining", False)
    assert images_of(found) == {PRE_JOB: "toolkit:other"}


def test_a_node_that_is_paused_late_goes_on() -> None:
    """What had begun before we took over is not held."""
    found = on_the_way("PreDraining", asked=[PRE])
    other_job(found, PRE_JOB)
    found.patch(found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": ["n1"]}}})
    found.end_job(PRE_JOB)
    found.rounds()
    assert found.state("n1") == "PreDrained"


@pytest.mark.parametrize("os", [OLD_OS, NEW_OS], ids=["before its reboot", "after its reboot"])
@pytest.mark.parametrize("state", ["PostDraining", "WaitingReboot"])
def test_a_node_is_acknowledged_once_it_runs_the_new_os(state: str, os: str) -> None:
    found = on_the_way(state, asked=[PRE, PRE_HOOK, POST], os=os)
    found.patch(found.get("v1", "Node", "n1"), {"metadata": {"annotations": {PENDING: NEW_OS}}})
    other_job(found, PRE_JOB, ended=True)
    other_job(found, POST_JOB, ended=True)
    found.rounds()
    if os == OLD_OS:
        assert (found.state("n1"), found.annotation("n1", POST_HOOK)) == ("WaitingReboot", None)
        found.reboot("n1")
        found.rounds()
    assert (found.state("n1"), found.annotation("n1", POST_HOOK)) == ("PostDrained", answer_to(POST_HOOK))
    assert PENDING not in found.get("v1", "Node", "n1")["metadata"].get("annotations", {})
    assert images_of(found) == {PRE_JOB: "toolkit:other", POST_JOB: "toolkit:other"}


@pytest.mark.parametrize("state", ["PostDraining", "WaitingReboot"])
def test_where_the_os_tells_nothing_a_new_boot_is_waited_for(state: str) -> None:
    """Of the same release, nobody knows whether the node has been rebooted already: rebooting it does no harm then."""
    found = on_the_way(state, asked=[PRE, PRE_HOOK, POST], os=NEW_OS, previous="v1.8.0")
    other_job(found, POST_JOB, ended=True)
    found.rounds()
    assert (found.state("n1"), found.annotation("n1", POST_HOOK)) == ("WaitingReboot", None)
    found.reboot("n1")
    found.rounds()
    assert (found.state("n1"), found.annotation("n1", POST_HOOK)) == ("PostDrained", answer_to(POST_HOOK))


def test_a_job_that_runs_shows_that_its_node_has_not_been_rebooted() -> None:
    """The node has the new OS already, as one that was reinstalled has."""
    found = on_the_way("PostDraining", asked=[PRE, PRE_HOOK, POST], os=NEW_OS)
    other_job(found, POST_JOB)
    found.rounds()
    found.end_job(POST_JOB)
    found.rounds()
    assert (found.state("n1"), found.annotation("n1", POST_HOOK)) == ("WaitingReboot", None)


def test_a_state_that_lags_behind_the_job_and_the_reboot() -> None:
    """The other manager was gone when the Job ended, and when the node came back."""
    found = on_the_way("PreDrained", asked=[PRE, PRE_HOOK, POST], os=NEW_OS)
    other_job(found, PRE_JOB, ended=True)
    other_job(found, POST_JOB, ended=True)
    found.rounds()
    assert (found.state("n1"), found.annotation("n1", POST_HOOK)) == ("PostDrained", answer_to(POST_HOOK))


@pytest.mark.parametrize("previous", ["v1.7.1", "v1.8.0"])
def test_no_job_is_made_again_for_a_node_that_waits_for_its_reboot(previous: str) -> None:
    """The state says that its Job has succeeded, be the Job gone."""
    found = on_the_way("WaitingReboot", asked=[PRE, PRE_HOOK, POST], os=OLD_OS, previous=previous)
    found.patch(found.get("v1", "Node", "n1"), {"metadata": {"annotations": {PENDING: NEW_OS}}})
    found.rounds()
    assert found.jobs() == []
    found.reboot("n1")
    found.rounds()
    assert (found.state("n1"), found.jobs()) == ("PostDrained", [])
    assert PENDING not in found.get("v1", "Node", "n1")["metadata"].get("annotations", {})


def two_nodes(first: str, second: str) -> Small:
    found = on_the_way(first)
    found.set_status(nodeUpgradeStatuses={"n1": {"state": first}, "n2": {"state": second}})
    return found


def test_of_two_nodes_that_were_let_in_one_goes_on() -> None:
    """Field rule 13: one at a time, whatever Rancher has marked and the other manager has begun."""
    found = two_nodes("PreDrained", "PreDrained")
    for name in ("n1", "n2"):
        found.ask(name, PRE, f"asked {name}")
    done = found.rounds()
    assert [found.annotation(name, PRE_HOOK) for name in ("n1", "n2")] == ["asked n1", None]
    assert done.decision
    assert "another node is being drained or upgraded: n1" in [wait.text for wait in done.decision.waits]


def test_of_two_nodes_that_were_let_in_the_one_that_is_further_goes_on() -> None:
    found = two_nodes("PreDrained", "WaitingReboot")
    for name in ("n1", "n2"):
        found.ask(name, PRE, f"asked {name}")
    found.ask("n2", PRE_HOOK, "asked n2")
    found.ask("n2", POST, "asked again")
    found.rounds()
    assert found.annotation("n1", PRE_HOOK) is None
    found.reboot("n2")
    found.rounds()
    assert [found.annotation("n2", POST_HOOK), found.annotation("n1", PRE_HOOK)] == ["asked again", None]
    found.ask("n2", POST, None)
    found.rounds()
    assert found.annotation("n1", PRE_HOOK) == "asked n1"


def test_an_answer_that_is_owed_comes_before_another_node_is_drained() -> None:
    found = two_nodes("ImagePreloaded", "PostDrained")
    found.ask("n1", PRE, "asked n1")
    for key, value in ((PRE, "asked n2"), (PRE_HOOK, "asked n2"), (POST, "asked again")):
        found.ask("n2", key, value)
    found.reboot("n2")
    found.rounds()
    assert found.annotation("n2", POST_HOOK) == "asked again"


def single(state: str, previous: str = "v1.7.1") -> Small:
    given = plan(version="v1.8.0")
    found = world("n1", given=given, more=[node("n1")])
    found.set_status(
        currentPhase="NodeUpgrading",
        previousVersion=previous,
        singleNode="n1",
        version={"isoURL": "https://releases.example.com/h.iso", "isoChecksum": ""},
        releaseMetadata=METADATA,
        nodeUpgradeStatuses={"n1": {"state": state}},
    )
    return found


@pytest.mark.parametrize("failed", [True, False])
def test_a_single_node_that_is_paused_late_goes_on(failed: bool) -> None:
    """Of the same release, so that nobody knows which boot it was."""
    found = single("SingleNodeUpgrading", "v1.8.0")
    found.patch(found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": ["n1"]}}})
    other_job(found, "up-node-upgrade-single-node-upgrade-n1")
    found.end_job("up-node-upgrade-single-node-upgrade-n1", failed=failed)
    found.rounds()
    expected = ("Failed", "SingleNodeUpgradeFailed") if failed else ("NodeUpgrading", "WaitingReboot")
    assert (found.phase, found.state("n1")) == expected


def test_a_single_node_goes_on() -> None:
    found = single("SingleNodeUpgrading")
    other_job(found, "up-node-upgrade-single-node-upgrade-n1")
    assert found.rounds().problems == ()
    found.end_job("up-node-upgrade-single-node-upgrade-n1")
    found.rounds()
    assert found.state("n1") == "WaitingReboot"
    found.reboot("n1")
    found.rounds()
    assert found.state("n1") == "SingleNodeUpgraded"


def test_what_was_borrowed_before_the_phase_was_entered_goes_back_too() -> None:
    """The other manager had made its preparations, and was gone before it recorded that nodes are upgraded; or it had
    told Rancher, and not recorded that."""
    found = taken_over("ImagePreloaded", "ClusterUpgraded", os=OLD_OS)
    found.set_status(nodeUpgradeStatuses=None, provisionGeneration=None)
    found.rounds()
    found.end_plan("up-skip-manifest-apply")
    found.rounds()
    assert found.phase == "NodeUpgrading"
    taken = {loan["path"]: loan.get("value", "absent") for loan in found.status["borrowed"]}
    assert taken["/value"] == "450"
    assert taken["/spec/enabled"] is True
    assert taken["/spec/rkeConfig/upgradeStrategy"] == "absent"
    found.delete_plan()
    found.to_its_end()
    assert borrowed(found) == {**AS_IT_WAS, "generation": 7}


def test_preparations_go_back_if_the_plan_is_deleted_before_we_have_looked() -> None:
    found = taken_over("ImagePreloaded", "ClusterUpgraded", os=OLD_OS)
    found.set_status(nodeUpgradeStatuses=None, provisionGeneration=None)
    found.delete_plan()
    found.to_its_end()
    assert (borrowed(found)["wait"], borrowed(found)["descheduler"]) == ("450", True)


def test_a_plan_that_has_failed_before_its_cleanup_gives_back_what_goes_back_then() -> None:
    """The other manager stays there as long as its cleanup meets errors. How far it had come, its history tells."""
    found = taken_over("ImagePreloaded", FAILED, os=OLD_OS)
    moment = "2026-01-01T00:00:00Z"
    history = [{"phase": phase, "phaseTransitionTimestamp": moment} for phase in ("NodeUpgrading", FAILED)]
    why = {"type": "Progressing", "status": "True", "reason": FAILED, "message": "node n1 upgrade failed: no room"}
    found.set_status(
        phaseTransitionTimestamps=history,
        conditions=[{**why, "lastTransitionTime": moment}],
        nodeUpgradeStatuses={"n1": {"state": "PreDrainFailed", "message": "no room"}},
    )
    found.rounds()
    found.end_plan("up-skip-manifest-remove")
    found.rounds()
    assert found.condition("Progressing")["status"] == "False"
    assert borrowed(found)["wait"] == "450"
    assert borrowed(found)["methods"] == []
    assert found.plan["metadata"]["finalizers"] == [FINALIZER]
    found.delete_plan()
    found.to_its_end()
    assert borrowed(found) == AS_IT_WAS


def test_what_the_other_manager_has_left_on_a_node_goes_with_the_plan() -> None:
    """Its annotation stays where its patch had failed."""
    found = taken_over("ImageCleaned", "CleanedUp")
    found.patch(found.get("v1", "Node", "n1"), {"metadata": {"annotations": {PENDING: NEW_OS}}})
    found.to_its_end()
    assert PENDING not in found.get("v1", "Node", "n1")["metadata"].get("annotations", {})


def test_the_repository_is_kept_alive_after_a_takeover() -> None:
    found = taken_over("ImagePreloaded", os=OLD_OS)
    found.rounds()
    assert [body["metadata"]["name"] for body in found.all("Deployment")] == ["up-repo"]


def test_what_the_operator_has_raised_meanwhile_stays() -> None:
    found = taken_over("ImagePreloaded", "ClusterUpgraded", os=OLD_OS)
    wait = found.get("longhorn.io/v1beta2", "Setting", "replica-replenishment-wait-interval", "longhorn-system")
    found.patch(wait, {"value": "3600"})
    found.rounds()
    assert not [loan for loan in found.status["borrowed"] if loan["path"] == "/value"]


# ------------------------------------------------------------------------------------------ objects of other phases


@pytest.mark.parametrize(
    ("phase", "kind", "name", "change"),
    [
        ("ISODownloading", "VirtualMachineImage", "up-iso", {"retry": 5}),
        ("RepoCreating", "Deployment", "up-repo", {"replicas": 1}),
        ("ImagePreloading", "Plan", "up-image-preload", {"concurrency": 7}),
        ("ClusterUpgrading", "Job", "up-cluster-upgrade", {"backoffLimit": 6}),
    ],
)
def test_what_the_other_manager_has_made_in_a_phase_does_its_work(
    phase: str, kind: str, name: str, change: Json
) -> None:
    ours = taken_over("ImagePreloaded", phase)
    ours.rounds()
    [made] = [body for body in ours.all(kind) if body["metadata"]["name"] == name]
    found = taken_over("ImagePreloaded", phase)
    metadata = {key: made["metadata"].get(key) for key in ("name", "namespace", "labels")}
    body = {**{key: made[key] for key in ("apiVersion", "kind")}, "metadata": metadata}
    other_made(found, {**body, "spec": {**made["spec"], **change}})
    assert found.rounds().problems == ()
    [live] = [body for body in found.all(kind) if body["metadata"]["name"] == name]
    assert {key: live["spec"][key] for key in change} == change
    assert found.condition("Degraded")["status"] == "False"


def test_an_object_of_ours_that_somebody_else_has_changed_is_still_refused() -> None:
    """Only what we have never applied is taken as it is."""
    found = taken_over("ImagePreloaded", "RepoCreating")
    found.rounds()
    repo = found.get("apps/v1", "Deployment", "up-repo", "harvester-system")
    found.patch(repo, {"spec": {"replicas": 7}})
    found.set_status(steps=None)
    assert "held by 'test'" in "; ".join(found.rounds().problems)


# ------------------------------------------------------------------------------------------------------- since when


def wait_of(found: Small, ref: str) -> Wait:
    found.scene.clock.advance(timedelta(hours=3).total_seconds())
    decision = found.rounds().decision
    assert decision is not None
    [wait] = [wait for wait in decision.waits if ref in map(str, wait.refs)]
    return wait


def test_a_job_is_waited_for_since_the_other_manager_made_it() -> None:
    found = on_the_way("PreDraining", asked=[PRE])
    found.scene.clock.advance(60)
    made = found.scene.clock.now()
    other_job(found, PRE_JOB)
    wait = wait_of(found, f"Job harvester-system/{PRE_JOB}")
    assert (wait.since, wait.slow) == (made, True)


def test_a_plan_is_waited_for_since_the_other_manager_made_it() -> None:
    ours = taken_over("ImagePreloaded", "ImagePreloading")
    ours.rounds()
    [body] = [item for item in ours.all("Plan") if item["metadata"]["name"] == "up-image-preload"]
    found = taken_over("ImagePreloaded", "ImagePreloading")
    found.scene.clock.advance(60)
    made = found.scene.clock.now()
    metadata = {key: body["metadata"][key] for key in ("name", "namespace", "labels")}
    other_made(found, {**{key: body[key] for key in ("apiVersion", "kind", "spec")}, "metadata": metadata})
    wait = wait_of(found, "Plan cattle-system/up-image-preload")
    assert (wait.since, wait.slow) == (made, True)


def test_a_reboot_is_waited_for_since_the_job_before_it_ended() -> None:
    found = on_the_way("WaitingReboot", asked=[PRE, PRE_HOOK, POST])
    other_job(found, POST_JOB, ended=True)  # the completion is written as of the start
    assert wait_of(found, "Node n1").since == START


def test_what_has_no_object_is_waited_for_since_the_phase_began() -> None:
    found = taken_over("ImagePreloaded", "MetadataPopulating")
    found.set_status(
        releaseMetadata=None,
        phaseTransitionTimestamps=[{"phase": "MetadataPopulating", "phaseTransitionTimestamp": time_text(START)}],
    )
    found.scene.clock.advance(3600)
    decision = found.rounds().decision
    assert decision is not None
    assert [(wait.step, wait.since) for wait in decision.waits] == [("MetadataPopulate/ReleaseFile", START)]


@pytest.mark.parametrize("phase", ["LogPreparing", "LogPrepared"])
def test_a_plan_whose_logs_the_other_manager_was_preparing_goes_on(phase: str) -> None:
    """A stage of its newest tree, between Initialize and ISODownload."""
    small = world()
    values = ("Initializing", "Initialized", phase)
    times = [{"phase": value, "phaseTransitionTimestamp": time_text(START)} for value in values]
    small.set_status(
        currentPhase=phase,
        previousVersion="v1.7.1",
        version={"isoURL": "https://releases.example.com/h.iso", "isoChecksum": ""},
        phaseTransitionTimestamps=times,
    )
    small.rounds()
    history = [entry["phase"] for entry in small.status["phaseTransitionTimestamps"]]
    assert history[:5] == [*values, "Initialized", "ISODownloading"]
    assert small.all("VirtualMachineImage")
