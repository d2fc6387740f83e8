"""A failed plan goes on from the step that has failed, once somebody asks for it: the one step back there is."""

from __future__ import annotations

from typing import Any

import pytest
from support.small_cluster import (
    METADATA,
    POST,
    POST_JOB,
    PRE,
    PRE_JOB,
    STRATEGY,
    Small,
    being_prepared,
    drained,
    upgrading,
    waiting_for_rancher,
    world,
)

from reconcile.status.attempt import RETRY, TAKE_BACK
from reconcile.status.plan import FAILED

pytestmark = pytest.mark.slow

SETTING = ("longhorn.io/v1beta2", "Setting", "replica-replenishment-wait-interval", "longhorn-system")


def annotate(found: Small, key: str, value: str | None) -> None:
    found.patch(found.plan, {"metadata": {"annotations": {key: value}}})


def retry(found: Small, number: str = "1") -> None:
    annotate(found, RETRY, number)
    found.rounds()


def ended(found: Small) -> Small:
    """Whatever an ending waits for is done, and the plan has failed for good. The ISO that it began with is there."""
    if not found.all("VirtualMachineImage"):
        iso_image(found)
    for _ in range(3):
        found.rounds()
        for item in found.all("Plan"):
            if "skip-manifest-remove" in item["metadata"]["name"]:
                found.end_plan(item["metadata"]["name"])
    assert found.phase == FAILED
    assert found.condition("Progressing")["status"] == "False"
    return found


def told(found: Small, reason: str) -> list[str]:
    return [text for why, text in found.events() if why == reason]


def history(found: Small) -> list[str]:
    return [entry["phase"] for entry in found.status["phaseTransitionTimestamps"]]


def standing(phase: str, *names: str, **more: Any) -> Small:
    found = world(*(names or ("n1", "n2")), **more)
    found.set_status(
        currentPhase=phase,
        previousVersion="v1.7.1",
        releaseMetadata=METADATA,
        version={"isoURL": "https://releases.example.com/h.iso", "isoChecksum": ""},
    )
    found.rounds()
    return found


# --------------------------------------------------------------------------------------------------- phase by phase


def import_fails(found: Small, name: str) -> None:
    image = next(body for body in found.all("VirtualMachineImage") if body["metadata"]["name"] == name)
    conditions = [{"type": "Imported", "status": "False", "reason": "ImportFailed", "message": "no route to host"}]
    found.patch(image, {"status": {"conditions": conditions, "failed": 4}})


def test_a_failed_import_is_tried_again_as_another_image() -> None:
    found = world()
    found.rounds()
    import_fails(found, "up-iso")
    ended(found)
    retry(found)
    assert found.phase == "ISODownloading"
    images = {body["metadata"]["name"]: body["spec"]["displayName"] for body in found.all("VirtualMachineImage")}
    assert images == {"up-iso": "up-v1.8.0", "up-iso-retry-1": "up-v1.8.0-retry-1"}
    image = next(body for body in found.all("VirtualMachineImage") if body["metadata"]["name"] == "up-iso-retry-1")
    found.patch(image, {"status": {"conditions": [{"type": "Imported", "status": "True"}]}})
    found.rounds()
    [repository] = found.all("Deployment")
    volumes = repository["spec"]["template"]["spec"]["volumes"]
    assert [volume["persistentVolumeClaim"]["claimName"] for volume in volumes] == ["up-iso-retry-1"]
    assert found.status["isoImageID"] == "up-iso-retry-1"


def test_a_refused_version_is_looked_at_again() -> None:
    found = world()
    found.set_status(
        currentPhase="MetadataPopulated",
        previousVersion="v1.9.0",
        releaseMetadata=METADATA,
        version={"isoURL": "https://releases.example.com/h.iso", "isoChecksum": ""},
    )
    ended(found)
    assert "downgrading is prohibited" in found.condition("Progressing")["message"]
    found.patch(found.plan, {"spec": {"force": True}})
    retry(found)
    assert found.phase == "ImagePreloading"
    assert history(found)[-3:] == [FAILED, "MetadataPopulated", "ImagePreloading"]


def test_failed_jobs_of_the_former_attempt_are_ignored() -> None:
    found = standing("ImagePreloading")
    labels = {"upgrade-plan": found.name, "upgrade-component": "image-preload"}
    found.create(preload_job("n1", labels, "up-image-preload"))
    found.end_job("preload-n1", failed=True, message="no space left on device")
    found.end_plan("up-image-preload", failed=True)
    ended(found)
    assert found.state("n1") == "ImagePreloadFailed"
    retry(found)
    assert (found.phase, found.state("n1")) == ("ImagePreloading", "ImagePreloading")
    assert sorted(item["metadata"]["name"] for item in found.all("Plan")) == [
        "up-image-preload",
        "up-image-preload-retry-1",
    ]
    found.end_plan("up-image-preload-retry-1")
    found.rounds()
    assert "ImagePreloaded" in history(found)
    assert found.state("n1") == "ImagePreloaded"


def preload_job(node: str, labels: dict[str, str], plan: str) -> Any:
    container = {"name": "upgrade", "image": "example.com/image"}
    ours = {f"management.harvesterhci.io/{key}": value for key, value in labels.items()}
    both = {**ours, "upgrade.cattle.io/node": node, "upgrade.cattle.io/plan": plan}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": f"preload-{node}", "namespace": "cattle-system", "labels": both},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container]}}},
    }


def test_the_services_are_upgraded_again_by_another_job() -> None:
    found = standing("ImagePreloaded")
    found.rounds()
    assert found.phase == "ClusterUpgrading"
    found.end_job("up-cluster-upgrade", failed=True)
    ended(found)
    retry(found)
    assert found.phase == "ClusterUpgrading"
    assert found.jobs() == ["up-cluster-upgrade", "up-cluster-upgrade-retry-1"]
    found.end_job("up-cluster-upgrade-retry-1")
    found.rounds()
    assert "ClusterUpgraded" in history(found)
    [attempt] = found.status["steps"]["ClusterUpgrade"]["attempts"]["Manifests"]
    assert (attempt["state"], attempt["message"]) == ("Failed", "cluster-upgrade job failed")
    assert [made["name"] for made in attempt["objects"]] == ["up-cluster-upgrade"]


def test_manifests_that_could_not_be_skipped_are_skipped_again() -> None:
    """The phase was not entered yet, so the plan is where it was before."""
    found = upgrading("n1", "n2", states={})
    found.set_status(currentPhase="ClusterUpgraded")
    found.rounds()
    found.end_plan("up-skip-manifest-apply", failed=True)
    ended(found)
    retry(found)
    assert found.phase == "ClusterUpgraded"
    found.end_plan("up-skip-manifest-apply-retry-1")
    found.rounds()
    assert found.phase == "NodeUpgrading"


def failed_pre_drain(found: Small | None = None) -> Small:
    found = being_prepared(found)
    found.end_job(PRE_JOB, failed=True, message="Job has reached the specified backoff limit")
    return ended(found)


def caught_up(found: Small, number: str = "1") -> Small:
    """What the failure had undone is done again."""
    retry(found, number)
    found.end_plan(f"up-skip-manifest-apply-retry-{number}")
    found.rounds()
    return found


def test_a_node_is_prepared_again_for_its_drain() -> None:
    found = failed_pre_drain()
    assert found.state("n1") == "PreDrainFailed"
    retry(found)
    assert (found.phase, found.state("n1")) == ("NodeUpgrading", "PreDraining")
    assert history(found)[-3:] == ["NodeUpgrading", FAILED, "NodeUpgrading"]
    assert found.jobs() == [PRE_JOB]  # what was undone comes first
    assert told(found, "UpgradeRetried") == ["Retry 1 of NodeUpgrade/PreDrain/n1"]
    found.end_plan("up-skip-manifest-apply-retry-1")
    found.rounds()
    assert found.jobs() == [PRE_JOB, f"{PRE_JOB}-retry-1"]
    found.end_job(f"{PRE_JOB}-retry-1")
    found.rounds()
    assert found.state("n1") == "PreDrained"
    assert found.condition("Degraded")["status"] == "False"
    assert found.condition("Available")["status"] == "True"


def test_a_node_is_upgraded_again_after_its_drain() -> None:
    """The boot before the first attempt counts: a node that has rebooted into the new OS since is back."""
    found = drained()
    found.ask("n1", POST, "second")
    found.rounds()
    found.end_job(POST_JOB, failed=True)
    ended(found)
    assert found.state("n1") == "PostDrainFailed"
    found.reboot("n1")
    caught_up(found)
    assert found.state("n1") == "PostDraining"
    found.end_job(f"{POST_JOB}-retry-1")
    found.rounds()
    assert found.state("n1") == "PostDrained"


def test_the_only_node_is_upgraded_again() -> None:
    found = upgrading("n1", states={})
    found.set_status(currentPhase="ClusterUpgraded", singleNode="n1")
    found.rounds()
    job = "up-node-upgrade-single-node-upgrade-n1"
    found.end_job(job, failed=True)
    ended(found)
    assert found.state("n1") == "SingleNodeUpgradeFailed"
    retry(found)
    assert (found.phase, found.state("n1")) == ("NodeUpgrading", "SingleNodeUpgrading")
    assert found.jobs() == [job, f"{job}-retry-1"]


def test_a_second_retry_keeps_both_attempts() -> None:
    found = caught_up(failed_pre_drain())
    found.end_job(f"{PRE_JOB}-retry-1", failed=True)
    ended(found)
    caught_up(found, "2")
    attempts = found.status["steps"]["NodeUpgrade"]["attempts"]["PreDrain/n1"]
    assert [made["name"] for attempt in attempts for made in attempt["objects"]] == [PRE_JOB, f"{PRE_JOB}-retry-1"]
    assert found.jobs() == [PRE_JOB, f"{PRE_JOB}-retry-1", f"{PRE_JOB}-retry-2"]


# ------------------------------------------------------------------------------------------- borrowed, and given back


def test_what_was_returned_is_borrowed_again_with_the_first_original() -> None:
    found = failed_pre_drain(waiting_for_rancher(version="v1.8.0"))
    assert found.get(*SETTING)["value"] == "600"
    found.patch(found.get(*SETTING), {"value": "300"})  # by hand, and not to last
    caught_up(found)
    assert found.get(*SETTING)["value"] == "1800"
    [loan] = [item for item in found.status["borrowed"] if item["kind"] == "Setting"]
    assert (loan["value"], loan.get("returned")) == ("600", None)


def test_the_drain_hooks_stay_between_failure_and_retry() -> None:
    found = failed_pre_drain()
    local = ("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")
    hooks = found.get(*local)["spec"]["rkeConfig"]["upgradeStrategy"]
    assert hooks != STRATEGY
    caught_up(found)
    assert found.get(*local)["spec"]["rkeConfig"]["upgradeStrategy"] == hooks
    assert found.get(*local)["spec"]["rkeConfig"]["provisionGeneration"] == 6


def test_a_node_that_is_done_stays_done() -> None:
    found = upgrading("n1", "n2", states={"n1": "PostDrained", "n2": "PreDraining"})
    found.ask("n2", PRE, "second")
    found.rounds()
    job = "up-node-upgrade-pre-drain-n2"
    found.end_job(job, failed=True)
    ended(found)
    retry(found)
    assert (found.state("n1"), found.state("n2")) == ("PostDrained", "PreDraining")


# -------------------------------------------------------------------------------------------- in the middle of a retry


@pytest.mark.parametrize("after", range(1, 7))
def test_a_retry_survives_a_restart_anywhere(after: int) -> None:
    found = failed_pre_drain()
    annotate(found, RETRY, "1")
    for _ in range(after):
        found.round()
    found.restart()
    found.rounds()
    found.end_plan("up-skip-manifest-apply-retry-1")
    found.rounds()
    assert found.jobs() == [PRE_JOB, f"{PRE_JOB}-retry-1"]
    assert told(found, "UpgradeRetried") == ["Retry 1 of NodeUpgrade/PreDrain/n1"]


# --------------------------------------------------------------------------------------------------- what is refused


def refused(found: Small, number: str = "1") -> str:
    before = found.status.get("nodeUpgradeStatuses")
    retry(found, number)
    assert found.phase == FAILED
    assert found.status.get("nodeUpgradeStatuses") == before
    [event] = told(found, "RetryRefused")
    assert event == f"retry {number} is refused: {found.status['retry']['refused']}"
    found.rounds()
    assert told(found, "RetryRefused") == [event]
    return str(found.status["retry"]["refused"])


def test_what_is_no_number_is_refused() -> None:
    assert refused(failed_pre_drain(), "now") == "'now' is not the number of an attempt"


def test_a_number_that_was_used_is_refused() -> None:
    found = caught_up(failed_pre_drain(), "2")
    found.end_job(f"{PRE_JOB}-retry-2", failed=True)
    ended(found)
    assert refused(found, "1") == "1 is not above 2, the last attempt"


def another_plan(found: Small, **status: Any) -> None:
    plan = {
        "apiVersion": found.plan["apiVersion"],
        "kind": "UpgradePlan",
        "metadata": {"name": "next"},
        "spec": {"version": "v1.8.0"},
    }
    found.create(plan)
    if status:
        body = found.get(plan["apiVersion"], "UpgradePlan", "next")
        found.patch(body, {"status": status}, "status")


def test_while_another_plan_is_active_it_is_refused() -> None:
    found = failed_pre_drain()
    another_plan(found)
    assert refused(found) == 'another upgrade "next" is in progress'


def test_after_another_plan_has_gone_on_it_is_refused() -> None:
    found = failed_pre_drain()
    found.scene.clock.advance(60)
    condition = {"type": "Progressing", "status": "False", "reason": "Succeeded", "message": ""}
    another_plan(
        found, currentPhase="Succeeded", conditions=[{**condition, "lastTransitionTime": "2036-01-01T00:00:00Z"}]
    )
    assert refused(found) == 'plan "next" was started after this one had ended'


def test_a_plan_that_has_succeeded_is_not_retried() -> None:
    found = world()
    condition = {"type": "Progressing", "status": "False", "reason": "Succeeded", "message": ""}
    found.set_status(currentPhase="Succeeded", conditions=[{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
    retry(found)
    assert told(found, "RetryRefused") == ["retry 1 is refused: the plan has not failed: it is Succeeded"]


def test_a_number_that_a_running_plan_has_used_starts_nothing_once_it_has_failed() -> None:
    found = being_prepared()
    retry(found)
    assert found.status["retry"]["attempt"] == 1
    found.end_job(PRE_JOB, failed=True)
    ended(found)
    found.rounds()
    assert found.phase == FAILED


# -------------------------------------------------------------------------------- plans that another manager has failed


def failed_elsewhere(found: Small, *, over: bool) -> Small:
    """As the Harvester Upgrade Manager leaves a plan of which a pre-drain Job has failed."""
    times = ["ClusterUpgraded", "NodeUpgrading", FAILED]
    status = "False" if over else "True"
    condition = {"type": "Progressing", "status": status, "reason": FAILED, "message": "node n1 upgrade failed: x"}
    found.set_status(
        currentPhase=FAILED,
        isoImageID="up-iso",
        provisionGeneration=6,
        conditions=[{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        phaseTransitionTimestamps=[
            {"phase": phase, "phaseTransitionTimestamp": "2026-01-01T00:00:00Z"} for phase in times
        ],
        nodeUpgradeStatuses={"n1": {"state": "PreDrainFailed", "message": "x"}, "n2": {"state": "ImagePreloaded"}},
    )
    return found


def iso_image(found: Small) -> None:
    found.set_status(isoImageID="up-iso")
    found.create(
        {
            "apiVersion": "harvesterhci.io/v1beta1",
            "kind": "VirtualMachineImage",
            "metadata": {"name": "up-iso", "namespace": "harvester-system"},
            "spec": {"displayName": "up", "sourceType": "download", "url": "https://example.com/h.iso"},
            "status": {"conditions": [{"type": "Imported", "status": "True"}]},
        }
    )


def test_a_plan_that_another_manager_has_failed_is_retried_while_its_image_is_there() -> None:
    found = failed_elsewhere(upgrading("n1", "n2", states={}), over=False)
    found.ask("n1", PRE, "first")
    ended(found)
    caught_up(found)
    assert (found.phase, found.state("n1")) == ("NodeUpgrading", "PreDraining")
    assert found.jobs() == [f"{PRE_JOB}-retry-1"]


def test_a_plan_that_another_manager_has_cleaned_up_is_not_retried() -> None:
    found = failed_elsewhere(upgrading("n1", "n2", states={}), over=True)
    annotate(found, RETRY, "1")
    found.rounds()
    assert found.phase == FAILED
    assert told(found, "RetryRefused") == [
        "retry 1 is refused: VirtualMachineImage harvester-system/up-iso is gone, and the rest of the upgrade needs "
        "it; create a new plan with the same target"
    ]


# ------------------------------------------------------------------------------------------------------- taken back


def test_a_failed_plan_that_is_taken_back_keeps_its_record() -> None:
    found = failed_pre_drain()
    record = found.status["steps"]["NodeUpgrade"]["records"]["PreDrain/n1"]
    annotate(found, TAKE_BACK, "true")
    found.rounds()
    local = found.get("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")
    assert local["spec"]["rkeConfig"]["upgradeStrategy"] == STRATEGY
    assert found.jobs() == []
    assert found.phase == FAILED
    assert found.status["steps"]["NodeUpgrade"]["records"]["PreDrain/n1"] == record
    assert all(loan.get("returned") for loan in found.status["borrowed"])
    retry(found)
    [said] = told(found, "RetryRefused")
    assert "the plan was taken back" in said


def test_what_was_approved_holds_for_a_retry() -> None:
    found = waiting_for_rancher()
    found.approve()
    failed_pre_drain(found)
    caught_up(found)
    assert f"{PRE_JOB}-retry-1" in found.jobs()
