"""Plans of the system-upgrade-controller, whose word about a failed Job does not last: what the loop makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from support.manual_actors import ManualActors
from support.small_cluster import METADATA, PREFIX, Small, upgrading, world

from reconcile.status.plan import FAILED

PRELOAD, CLEANUP = "up-image-preload", "up-image-cleanup"
LIMIT = "Job has reached the specified backoff limit"


def preloading(**more: Any) -> Small:
    found = world(**more)
    found.set_status(currentPhase="MetadataPopulated", previousVersion="v1.7.1", releaseMetadata=METADATA)
    found.rounds()
    assert found.phase == "ImagePreloading"
    return found


def run_job(found: Small, plan: str, name: str, *, failed: bool) -> None:
    """A Job of the Plan that has ended, with the labels that the controller gives it."""
    component = plan.removeprefix("up-")
    labels = {
        f"{PREFIX}upgrade-plan": "up",
        f"{PREFIX}upgrade-component": component,
        "upgrade.cattle.io/plan": plan,
        "upgrade.cattle.io/node": name,
    }
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    job = f"apply-{plan}-on-{name}"
    found.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": job, "namespace": "cattle-system", "labels": labels},
            "spec": {"template": {"spec": pod}},
        }
    )
    found.end_job(job, failed=failed, message=LIMIT if failed else "")


@pytest.mark.slow
def test_a_job_that_failed_while_nobody_looked_fails_the_preload() -> None:
    found = preloading()
    run_job(found, PRELOAD, "n1", failed=True)
    run_job(found, PRELOAD, "n2", failed=False)
    found.end_plan(PRELOAD, failed=True, reason="SyncJob")  # the end of n2 has overwritten JobFailed
    found.restart()
    found.rounds()
    assert found.phase == FAILED
    assert found.condition("Progressing")["message"] == "image-preload plan job(s) failed"
    assert f"n1: {LIMIT}" in found.condition("Degraded")["message"]
    assert (found.state("n1"), found.state("n2")) == ("ImagePreloadFailed", "ImagePreloaded")


@pytest.mark.slow
def test_a_failed_job_fails_the_plan_that_skips_manifests() -> None:
    found = world()
    found.set_status(currentPhase="ClusterUpgraded", previousVersion="v1.7.1", releaseMetadata=METADATA)
    found.rounds()
    run_job(found, "up-skip-manifest-apply", "n3", failed=True)
    found.end_plan("up-skip-manifest-apply", failed=True, reason="SyncJob")
    found.rounds()
    assert found.phase == FAILED
    assert LIMIT in found.condition("Degraded")["message"]


@pytest.mark.slow
def test_a_failed_job_of_the_image_cleanup_is_a_warning() -> None:
    found = upgrading(states=dict.fromkeys(("n1", "n2"), "PostDrained"))
    found.set_status(currentPhase="CleaningUp")
    ManualActors(found)
    found.rounds()
    run_job(found, CLEANUP, "n1", failed=True)
    found.end_plan(CLEANUP, failed=True, reason="SyncJob")
    found.to_its_end()
    assert found.phase == "Succeeded"
    assert ("StepWarning", True) in [(reason, LIMIT in text) for reason, text in found.events()]


def test_a_plan_whose_nodes_take_turns_is_slow_only_when_none_of_them_moves() -> None:
    """One node after another may take a whole day; each is given the limit."""
    found = preloading()
    for name in ("n1", "n2", "n3"):
        found.scene.clock.advance(50 * 60)
        run_job(found, PRELOAD, name, failed=False)
        found.rounds()
        assert found.condition("Degraded")["status"] == "False"
    found.scene.clock.advance(59 * 60)
    found.rounds()
    assert found.condition("Degraded")["status"] == "False"
    found.scene.clock.advance(2 * 60)
    found.rounds()
    assert (found.condition("Degraded")["status"], found.condition("Degraded")["reason"]) == ("True", "WaitingLong")


def test_a_complete_plan_completes_every_node_that_it_selects_without_its_jobs() -> None:
    found = preloading()
    found.set_status(nodeUpgradeStatuses={"n1": {"state": "ImagePreloading"}, "n2": {"state": "ImagePreloadFailed"}})
    found.end_plan(PRELOAD)
    found.until(lambda _: found.phase == "ImagePreloaded")
    assert [found.state(name) for name in ("n1", "n2", "n3")] == ["ImagePreloaded"] * 3


def test_a_complete_plan_does_not_complete_a_node_that_it_does_not_select() -> None:
    found = preloading()
    labels = {"metadata": {"labels": {"harvesterhci.io/managed": None}}}
    found.patch(found.get("v1", "Node", "n3"), labels)
    found.end_plan(PRELOAD)
    found.until(lambda _: found.phase == "ImagePreloaded")
    assert (found.state("n1"), found.state("n3")) == ("ImagePreloaded", None)
