"""The ways out of the phases before the cluster's services are upgraded, on a real API server: repair and go on, retry,
take back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Thread
from typing import Any

import pytest
from controlplane import waiting
from controlplane.cluster import ControlPlane
from support.real_upgrade import KINDS, PLAN, RealUpgrade, process, run_once, site
from support.rehearsals import inputs_of

from reconcile.loop.round import Round
from reconcile.simulator.actors.faults import FaultPlan
from reconcile.status.attempt import RETRY
from renderer.model.plan_api import PREFIX, plan_ref
from renderer.model.ref import Ref, ref_of

pytestmark = [
    pytest.mark.controlplane,
    pytest.mark.lane("upgrades"),
    pytest.mark.full("loops on a real API server; test_retry.py and test_way_out.py play the same on the embedded one"),
]

EXAMPLE = "single-node"
FULL = {"fs": {"capacityBytes": 100 * 2**30, "usedBytes": 97 * 2**30}, "imageGCHighThresholdPercent": 85}


def until(
    place: RealUpgrade, reached: Callable[[Mapping[str, Any] | None], bool], facts: Mapping[str, Any] | None = None
) -> Any:
    """A loop of its own runs until the plan is as asked for; answers the plan, None if it is gone."""

    def on_round(done: Round) -> None:
        if reached(place.plan()):
            manager.stop()

    manager = process(
        place, EXAMPLE, on_round, transport=place.transport(), templates=run_once(), facts=facts or known()
    )
    worker = Thread(target=manager.run, daemon=True)
    worker.start()
    worker.join(timeout=waiting.PATIENCE)
    manager.stop()
    worker.join(timeout=waiting.PATIENCE)
    plan = place.plan()
    assert reached(plan), plan and plan.get("status")
    return plan


def known() -> Mapping[str, Any]:
    return inputs_of(EXAMPLE).facts


def stands_at(phase: str) -> Callable[[Mapping[str, Any] | None], bool]:
    return lambda plan: ((plan or {}).get("status") or {}).get("currentPhase") == phase


def has_failed(plan: Mapping[str, Any] | None) -> bool:
    """For good."""
    found = conditions(plan).get("Progressing", {})
    return (found.get("status"), found.get("reason")) == ("False", "Failed")


def conditions(plan: Mapping[str, Any] | None) -> dict[str, Any]:
    return {found["type"]: found for found in ((plan or {}).get("status") or {}).get("conditions") or ()}


def says(text: str) -> Callable[[Mapping[str, Any] | None], bool]:
    return lambda plan: text in conditions(plan).get("Progressing", {}).get("message", "")


def annotate(place: RealUpgrade, key: str, value: str) -> None:
    place.admin.patch(PLAN, plan_ref(place.name), {"metadata": {"annotations": {key: value}}})


def retry(place: RealUpgrade) -> None:
    annotate(place, RETRY, "1")


def history(plan: Mapping[str, Any] | None) -> list[str]:
    entries = ((plan or {}).get("status") or {}).get("phaseTransitionTimestamps") or ()
    return [entry["phase"] for entry in entries]


def left_of(place: RealUpgrade) -> list[str]:
    """What the plan has made and is still there."""
    label = f"{PREFIX}upgrade-plan"
    bodies = [body for body in place.everything() if (body["metadata"].get("labels") or {}).get(label) == place.name]
    return sorted(str(ref_of(body)) for body in bodies)


def taken_back(place: RealUpgrade) -> None:
    annotate(place, f"{PREFIX}allow-deletion", "true")
    place.admin.delete(PLAN, plan_ref(place.name))
    assert until(place, lambda plan: plan is None) is None
    waiting.until("the garbage collector has taken the pods", lambda: not left_of(place))


def mended(place: RealUpgrade) -> None:
    """Somebody has repaired what kept it."""
    place.world._context.faults.plan = FaultPlan()


def test_initialize_fails_on_a_full_disk_and_goes_on_once_there_is_room(wiped_control_plane: ControlPlane) -> None:
    with site(wiped_control_plane, EXAMPLE) as place:
        kubelet = {name: {**body, **FULL} for name, body in known()["kubelet"].items()}
        plan = until(place, has_failed, {**known(), "kubelet": kubelet})
        assert "higher than kubelet image garbage collection threshold" in conditions(plan)["Degraded"]["message"]
        assert "; remedy: " in conditions(plan)["Degraded"]["message"]
        retry(place)
        plan = until(place, stands_at("RepoCreating"))
        assert history(plan)[:4] == ["Initializing", "Initialized", "Failed", "Initialized"]


def test_a_repository_that_does_not_start_can_be_taken_back(
    wiped_control_plane: ControlPlane,
) -> None:
    """It is waited for: no gate of RepoCreate proves a failure, so there is nothing to retry."""
    with site(wiped_control_plane, EXAMPLE, stall=["repo"]) as place:
        plan = until(place, says("upgrade-repo deployment not ready"))
        assert plan["status"]["currentPhase"] == "RepoCreating"
        taken_back(place)


def test_a_release_file_that_cannot_be_read_is_read_once_it_can(wiped_control_plane: ControlPlane) -> None:
    """The same for MetadataPopulate: it goes on by itself, and can be taken back afterwards."""
    with site(wiped_control_plane, EXAMPLE, fail=["release-file"]) as place:
        plan = until(place, says("harvester-release.yaml"))
        assert plan["status"]["currentPhase"] == "MetadataPopulating"
        mended(place)
        plan = until(place, stands_at("ImagePreloading"))
        assert plan["status"]["releaseMetadata"]["harvester"] == "v1.8.0-rc5"
        taken_back(place)


def test_a_version_that_is_refused_is_upgraded_to_with_force(wiped_control_plane: ControlPlane) -> None:
    with site(wiped_control_plane, EXAMPLE) as place:
        setting = KINDS.row("harvesterhci.io/v1beta1", "Setting").kind
        ref = Ref(api_version="harvesterhci.io/v1beta1", kind="Setting", name="server-version")
        place.admin.patch(setting, ref, {"value": "v1.9.0"})
        plan = until(place, has_failed)
        assert "downgrading is prohibited" in conditions(plan)["Degraded"]["message"]
        place.admin.patch(PLAN, plan_ref(place.name), {"spec": {"force": True}})
        retry(place)
        plan = until(place, stands_at("ImagePreloading"))
        assert history(plan)[-3:] == ["Failed", "MetadataPopulated", "ImagePreloading"]


def test_images_that_could_not_be_loaded_are_loaded_by_a_retry(wiped_control_plane: ControlPlane) -> None:
    """system-upgrade-controller says so for a moment; it is played by hand, since it goes on trying."""
    node_plan = KINDS.row("upgrade.cattle.io/v1", "Plan").kind
    with site(wiped_control_plane, EXAMPLE, stall=["image-preload"]) as place:
        name = f"{place.name}-image-preload"
        ref = Ref(api_version="upgrade.cattle.io/v1", kind="Plan", namespace="cattle-system", name=name)
        until(place, lambda plan: stands_at("ImagePreloading")(plan) and f"Plan cattle-system/{name}" in left_of(place))
        failed = {"type": "Complete", "status": "False", "reason": "JobFailed", "message": "no space left on device"}
        place.admin.patch(node_plan, ref, {"status": {"conditions": [failed]}}, subresource="status")
        plan = until(place, has_failed)
        assert "image-preload plan job(s) failed" in conditions(plan)["Degraded"]["message"]
        mended(place)
        retry(place)
        plan = until(place, lambda plan: "ImagePreloaded" in history(plan))
        assert history(plan)[history(plan).index("Failed") + 1] == "ImagePreloading"
        assert f"Plan cattle-system/{name}-retry-1" in left_of(place)
