"""What the loop does up to the cluster's upgrade, situation by situation, with those that came from the field.

Each test is named after its case. Where we differ on purpose (DESIGN, "Deliberate differences"), ours is asserted and
the test says so.
"""

from __future__ import annotations

from typing import Any

import pytest
from support.rendered_plans import NODE_STATES, ROOT, Json, plan
from support.small_cluster import (
    METADATA,
    PRE,
    PRE_HOOK,
    PREFIX,
    Small,
    facts,
    kubevirt,
    managed_chart,
    node,
    upgrading,
    world,
)
from test_cases import documents

from reconcile.loop.active_plan import blocker_of
from reconcile.status.plan import FAILED
from reconcile.status.plan_body import status_of
from renderer.model.document_type import FACTS

PROGRESSING = {
    "type": "Progressing",
    "status": "True",
    "reason": "NodeUpgrading",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def ended(kind: str, name: str, **status: Any) -> Json:
    metadata = {"name": name, "namespace": "harvester-system"}
    return {"apiVersion": "harvesterhci.io/v1beta1", "kind": kind, "metadata": metadata, "spec": {}, "status": status}


def image(name: str, imported: str | None) -> Json:
    conditions = [{"type": "Imported", "status": imported}] if imported else []
    body = ended("VirtualMachineImage", name, conditions=conditions)
    return {**body, "spec": {"displayName": name, "sourceType": "download", "url": "https://x/i.iso"}}


# --------------------------------------------------------------------------------------------------------- the cases


def case_25() -> Small:
    """With what the case leaves out: the release, nodes, and the machine plan of the node that is done."""
    path = ROOT / "tests" / "cases" / "25-two-nodes-pre-drain.yaml"
    given, *objects = documents(path)
    names = ("node-a", "node-b", "node-c")
    machines = next(item["items"] for item in objects if item["kind"] == "MachineList")
    whole = [{"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Machine", **item} for item in machines]
    secrets = [item for item in objects if item["kind"] == "Secret"]
    third = {**secrets[0], "metadata": {**secrets[0]["metadata"], "name": "custom-ccc333-machine-plan"}}
    third["metadata"] |= {"labels": {"rke.cattle.io/machine-name": "custom-ccc333"}, "annotations": {}}
    found = world(*names, given=given, without=("Machine", "Secret"), more=[*map(node, names)])
    for body in (*whole, *secrets, third):
        found.scene.cluster.seed([body])
    found.set_status(**given["status"], releaseMetadata=METADATA)
    return found


@pytest.mark.slow
def test_case_25_two_nodes_pre_drain() -> None:
    """node-a is being drained, Rancher asks for node-b, and node-b gets no Job."""
    found = case_25()
    found.rounds()
    assert found.jobs() == ["hvst-upgrade-pair-node-upgrade-pre-drain-node-a"]
    assert (found.state("node-a"), found.state("node-b")) == ("PreDraining", "ImagePreloaded")
    done = found.round()
    assert done.decision
    text = "another node is being drained or upgraded: node-a"
    assert text in [wait.text for wait in done.decision.waits]
    assert found.status["nodeUpgradeStatuses"]["node-b"]["message"] == text
    warnings = [said for reason, said in found.events() if reason == "OutOfTurn"]
    assert warnings == [f"Node node-b was requested out of turn: {text}"]
    writes = len(found.scene.client.log.writes)
    found.restart()
    found.rounds()
    assert len(found.scene.client.log.writes) == writes
    for secret in found.all("Secret"):
        assert PRE_HOOK not in secret["metadata"].get("annotations", {})


def test_case_25_the_answer_comes_with_the_job_of_its_own() -> None:
    found = case_25()
    found.rounds()
    found.end_job("hvst-upgrade-pair-node-upgrade-pre-drain-node-a")
    found.rounds()
    asked = {s["metadata"]["name"]: s["metadata"].get("annotations", {}) for s in found.all("Secret")}
    first = asked["custom-aaa111-machine-plan"]
    assert first[PRE_HOOK] == first[PRE]
    assert PRE_HOOK not in asked["custom-bbb222-machine-plan"]
    assert len(found.jobs()) == 1


@pytest.mark.slow
def test_case_12_disk_over_gc_threshold() -> None:
    given, said = documents(ROOT / "tests" / "cases" / "12-disk-over-gc-threshold.yaml")
    other = facts({})["facts"]
    found = world("node-a", "node-b", given=given, more=[FACTS.document({"facts": {**other, **said["facts"]}})])
    found.rounds()
    message = found.condition("Progressing")["message"]
    assert found.phase == FAILED
    assert "node-b" in message
    assert "node-a" not in message
    assert "91" in message
    assert "85" in message


# -------------------------------------------------------------------------------------------------------- the runner


def test_a_new_plan_gets_a_phase_and_our_finalizer() -> None:
    found = world()
    found.round()
    assert found.phase == "Initializing"
    assert found.plan["metadata"]["finalizers"] == [f"{PREFIX}upgradeplan-cleanup"]
    found.round()
    assert found.condition("Available")["reason"] == "Executable"


def test_a_plan_that_is_not_there_is_no_error() -> None:
    found = world()
    done = found.scene.reconciler.round("nobody")
    assert (done.plan, done.problems, done.over) == (None, (), True)


def second(found: Small, name: str = "rival", **status: Any) -> None:
    found.create(plan(name))
    if status:
        body = found.get("management.harvesterhci.io/v1beta1", "UpgradePlan", name)
        found.patch(body, {"status": status}, "status")


def test_a_plan_waits_for_another_that_runs() -> None:
    found = world()
    second(found, currentPhase="NodeUpgrading", conditions=[PROGRESSING])
    done = found.rounds()
    available = found.condition("Available")
    assert (available["status"], available["reason"]) == ("False", "ConcurrentUpgradeBlocked")
    assert available["message"] == 'another upgrade "rival" is in progress'
    assert ("ConcurrentUpgradeBlocked", 'Blocked by in-progress upgrade "rival"') in found.events()
    assert found.phase == ""
    assert "finalizers" not in found.plan["metadata"]
    assert done.recheck
    found.rounds()
    assert len(found.events()) == 1


def test_of_two_that_run_one_goes_on() -> None:
    """Ours differs: the existing manager blocks both for ever; here the older one ends, then the other goes on."""
    found = world()
    second(found, currentPhase="NodeUpgrading", conditions=[PROGRESSING])
    found.set_status(currentPhase="NodeUpgrading", conditions=[PROGRESSING])
    plans = found.all("UpgradePlan")
    blockers = [blocker_of(item, plans, ()) for item in plans]
    assert blockers.count(None) == 1


def test_who_blocks_whom() -> None:
    own = {"metadata": {"name": "own", "creationTimestamp": "2026-01-02T00:00:00Z"}}
    done = [PROGRESSING | {"status": "False"}]
    over = {"metadata": {"name": "old"}, "status": {"currentPhase": "Succeeded", "conditions": done}}
    busy = {"metadata": {"name": "busy"}, "status": {"currentPhase": "NodeUpgrading", "conditions": [PROGRESSING]}}
    assert blocker_of(own, [], []) is None
    assert blocker_of(own, [own, over], []) is None
    assert blocker_of(own, [own, busy], []) == "busy"
    assert blocker_of(own, [own], [ended("Upgrade", "built-in")]) == "built-in"
    succeeded = ended("Upgrade", "built-in")
    succeeded["metadata"]["labels"] = {"harvesterhci.io/upgradeState": "Succeeded"}
    assert blocker_of(own, [own], [succeeded]) is None


@pytest.mark.slow
def test_a_failed_plan_is_finished_with_its_message() -> None:
    found = world()
    found.round()
    failure = PROGRESSING | {"reason": "Failed", "message": "it broke"}
    found.set_status(currentPhase="Failed", conditions=[failure])
    found.rounds()
    available, progressing = found.condition("Available"), found.condition("Progressing")
    assert (available["status"], available["reason"]) == ("False", "Executed")
    assert available["message"] == "Entered one of the terminal phases"
    assert (progressing["status"], progressing["reason"], progressing["message"]) == ("False", "Failed", "it broke")
    assert "finalizers" not in found.plan["metadata"]
    assert ("UpgradeFailed", "Upgrade failed: it broke") in found.events()


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_an_ended_plan_is_not_written(phase: str) -> None:
    found = world()
    conditions = [PROGRESSING | {"status": "False"}, PROGRESSING | {"type": "Available", "status": "False"}]
    found.set_status(currentPhase=phase, conditions=conditions)
    before = len(found.scene.client.log.writes)
    assert found.rounds().over
    assert len(found.scene.client.log.writes) == before


def test_a_plan_in_an_unknown_phase_is_left_alone() -> None:
    found = world()
    found.set_status(currentPhase="Dreaming")
    found.rounds()
    degraded = found.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ReconcileError")
    assert degraded["message"] == "unknown phase: Dreaming"
    found.rounds()
    assert found.events() == [("ReconcileError", "Pipeline error: unknown phase: Dreaming")]
    assert found.phase == "Dreaming"


@pytest.mark.slow
def test_each_phase_is_stamped_once() -> None:
    found = world()
    found.rounds()
    found.rounds()
    stamped = [entry["phase"] for entry in found.status["phaseTransitionTimestamps"]]
    assert stamped == ["Initializing", "Initialized", "ISODownloading"]


@pytest.mark.slow
def test_a_phase_that_is_refused_is_never_entered() -> None:
    """The version guard stands before the preload: its active value is not recorded."""
    found = world()
    found.set_status(
        currentPhase="MetadataPopulated",
        previousVersion="v1.9.0",
        releaseMetadata=upgrading(states={"n1": "x"}).status["releaseMetadata"],
    )
    found.rounds()
    assert found.phase == FAILED
    assert "ImagePreloading" not in [entry["phase"] for entry in found.status["phaseTransitionTimestamps"]]
    assert "downgrading is prohibited" in found.condition("Progressing")["message"]


# --------------------------------------------------------------------------------------------------------- node states


@pytest.mark.parametrize(
    ("ahead", "behind"),
    [
        ("WaitingReboot", "SingleNodeUpgrading"),
        ("SingleNodeUpgraded", "WaitingReboot"),
        ("SingleNodeUpgradeFailed", "SingleNodeUpgrading"),
        ("ImageCleaning", "PostDrained"),
        ("ImageCleaned", "ImageCleaning"),
        ("ImageCleanFailed", "ImageCleaning"),
        ("UpgradePaused", "ImagePreloaded"),
        ("PreDraining", "UpgradePaused"),
    ],
)
def test_a_node_state_is_ahead_of_those_before_it(ahead: str, behind: str) -> None:
    assert NODE_STATES.is_ahead(ahead, behind)
    assert not NODE_STATES.is_ahead(behind, ahead)


def test_same_ordinal_overwrites_and_unknown_is_behind_all() -> None:
    """Ours differs: an unknown or missing state is past nothing, rather than equal to the first."""
    assert not NODE_STATES.is_ahead("PreDrained", "PreDrainFailed")
    assert not NODE_STATES.is_ahead("PreDrainFailed", "PreDrained")
    assert all(NODE_STATES.is_ahead(row.name, "Unheard") for row in NODE_STATES)
    assert not any(NODE_STATES.is_ahead("Unheard", row.name) for row in NODE_STATES)
    assert len({state.ordinal for state in NODE_STATES}) == 10


# ---------------------------------------------------------------------------------------------------- the ISO, the repo


@pytest.mark.slow
def test_an_image_that_is_there_is_adopted() -> None:
    found = world(more=[image("given", "True")], image="given")
    assert found.until(lambda done: found.phase == "ISODownloaded")
    assert found.status["isoImageID"] == "given"
    assert "version" not in found.status  # no Version was looked up
    assert len(found.all("VirtualMachineImage")) == 1


ACCEPTED = {f"{PREFIX}accept-risk": "image-import-failed"}


@pytest.mark.slow
def test_an_adopted_image_that_failed_to_import() -> None:
    """It is found when the plan starts; if that is accepted, the plan ends where it waits for the image."""
    more = [image("given", "False")]
    held, found = world(more=more, image="given"), world(more=more, given=plan(annotations=ACCEPTED, image="given"))
    held.rounds()
    found.rounds()
    assert held.phase == "Initialized"
    assert (found.phase, found.condition("Progressing")["message"]) == (FAILED, "ISO image download failed")


def test_an_adopted_image_that_is_missing_is_waited_for() -> None:
    found = world(image="given")
    found.rounds()
    assert found.phase == "ISODownloading"
    assert found.rounds().recheck


def test_an_image_of_another_namespace_is_not_taken() -> None:
    """The old form, `namespace/name`, is superseded: it names no image, neither there nor here."""
    there, here = image("given", "True"), image("given", "True")
    there = {**there, "metadata": {**there["metadata"], "namespace": "default"}}
    found = world(more=[there, here])
    found.create(plan("other", image="default/given"))
    done = found.scene.reconciler.round("other")
    message = "spec.image: 'default/given' is not a name that a VirtualMachineImage of harvester-system can have"
    message += (
        " (remedy: spec.image cannot be changed: delete the plan, and create one that has the image's name alone)"
    )
    assert done.problems == (message,)
    refused = found.get("management.harvesterhci.io/v1beta1", "UpgradePlan", "other")
    [degraded] = refused["status"]["conditions"]
    assert (degraded["type"], degraded["message"]) == ("Degraded", message)
    assert "currentPhase" not in refused["status"]


def test_the_image_that_an_earlier_manager_has_recorded_is_the_one() -> None:
    recorded = {"isoImageID": "harvester-system/given"}
    found = world(more=[image("given", "True")], given=plan(image="harvester-system/given", status=recorded))
    found.set_status(currentPhase="ISODownloading", previousVersion="v1.7.1", **recorded)
    found.rounds()
    assert found.phase == "RepoCreating"
    assert found.status["isoImageID"] == "harvester-system/given"  # once recorded it stays as it is


def repo_creating(desired: int, available: int) -> Small:
    found = world()
    found.set_status(currentPhase="RepoCreating", isoImageID="up-iso", previousVersion="v1.7.1")
    found.rounds()
    repo = found.get("apps/v1", "Deployment", "up-repo", "harvester-system")
    counts = {
        "replicas": desired,
        "updatedReplicas": desired,
        "availableReplicas": available,
        "readyReplicas": available,
    }
    found.patch(repo, {"spec": {"replicas": desired}})
    found.patch(repo, {"status": counts | {"observedGeneration": 9}}, "status")
    found.rounds()
    return found


@pytest.mark.parametrize(("desired", "available", "ready"), [(2, 1, False), (2, 2, True), (1, 2, True)])
def test_a_deployment_is_ready_when_all_are_available(desired: int, available: int, ready: bool) -> None:
    found = repo_creating(desired, available)
    assert (found.get("v1", "Service", "up-repo", "harvester-system") is not None) == ready
    if not ready:
        assert found.condition("Progressing")["message"] == "upgrade-repo deployment not ready"


@pytest.mark.parametrize("conditions", [{}, {"ready": False}])
def test_endpoints_that_are_not_ready(conditions: Json) -> None:
    found = repo_creating(2, 2)
    slice_of_repo = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "s", "namespace": "harvester-system", "labels": {"kubernetes.io/service-name": "up-repo"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": conditions}],
    }
    found.create(slice_of_repo)
    found.rounds()
    assert found.phase == "RepoCreating"
    assert found.condition("Progressing")["message"] == "upgrade-repo svc/ep not ready"
    body = found.get("discovery.k8s.io/v1", "EndpointSlice", "s", "harvester-system")
    ready = [{"addresses": ["10.0.0.1"], "conditions": {"ready": True}}]
    found.patch(body, {"endpoints": ready})
    found.until(lambda done: found.phase == "RepoCreated")


# ----------------------------------------------------------------------------------------------------------- initialize


def annotated(**annotations: str) -> Json:
    return plan(annotations={f"{PREFIX}{key.replace('_', '-')}": value for key, value in annotations.items()})


@pytest.mark.slow
def test_a_skipped_disk_check_is_an_accepted_risk() -> None:
    found = world(given=annotated(skip_garbage_collection_threshold_check="true"), more=[facts({"n1": 146})])
    found.rounds()
    assert found.phase == "ISODownloading"
    [risk] = found.status["acceptedRisks"]
    key = f"{PREFIX}skip-garbage-collection-threshold-check"
    assert (risk["check"], risk["by"], risk["value"]) == ("disk-headroom", f"annotation {key}", "true")


@pytest.mark.slow
def test_a_skip_that_is_no_boolean() -> None:
    found = world(given=annotated(skip_garbage_collection_threshold_check="perhaps"))
    found.rounds()
    assert found.phase == "Initialized"
    assert "is perhaps, which is not a boolean" in found.condition("Degraded")["message"]


@pytest.mark.slow
def test_the_kubelet_has_its_own_threshold() -> None:
    used = {"n1": 124}  # with 13 GiB of new images 93 % of 147
    tight, roomy = world("n1", more=[facts(used)]), world("n1", more=[facts(used, threshold=95)])
    tight.rounds()
    roomy.rounds()
    assert (tight.phase, roomy.phase) == (FAILED, "ISODownloading")


HELD = "Initialized"


@pytest.mark.slow
@pytest.mark.parametrize(("days", "phase"), [(None, FAILED), ("3", "ISODownloading"), ("0", HELD), ("abc", HELD)])
def test_a_certificate_that_ends_in_six_days(days: str | None, phase: str) -> None:
    """Only one that was read and ends too early ends the plan."""
    given = annotated(min_certs_expiration_in_day=days) if days else plan()
    found = world("n1", given=given, more=[facts({"n1": 20}, expires="2026-01-07T00:00:01Z")])
    found.rounds()
    assert found.phase == phase


@pytest.mark.slow
def test_a_single_node_is_named() -> None:
    one, two = world("n1"), world("n1", "n2")
    one.rounds()
    two.rounds()
    assert one.status["singleNode"] == "n1"
    assert "singleNode" not in two.status


# -------------------------------------------------------------------------------------------------------- image preload


def preloading(**spec: Any) -> Small:
    found = world(**{"version": "v1.8.0", **spec})
    known = upgrading(states={"n1": "x"}).status
    found.set_status(currentPhase="MetadataPopulated", **{k: known[k] for k in ("previousVersion", "releaseMetadata")})
    found.rounds()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "given"), [(2, 2), (3, 3), (5, 3)])
def test_concurrency_is_at_most_the_nodes(asked: int, given: int) -> None:
    found = preloading(imagePreloadOption={"concurrency": asked})
    (preload,) = found.all("Plan")
    assert preload["spec"]["concurrency"] == given


@pytest.mark.slow
def test_a_negative_concurrency_skips_the_preload() -> None:
    found = preloading(imagePreloadOption={"concurrency": -1})
    assert found.phase == "ClusterUpgrading"
    assert not found.all("Plan")
    assert "ImagePreloaded" in [entry["phase"] for entry in found.status["phaseTransitionTimestamps"]]


@pytest.mark.parametrize(("reason", "failed"), [("JobFailed", True), ("SyncJob", False)])
def test_a_preload_that_failed(reason: str, failed: bool) -> None:
    found = preloading()
    found.end_plan("up-image-preload", failed=True, reason=reason)
    found.rounds()
    assert found.phase == (FAILED if failed else "ImagePreloading")
    if failed:
        assert found.condition("Progressing")["message"] == "image-preload plan job(s) failed"


@pytest.mark.slow
def test_force_enters_a_downgrade() -> None:
    found = world(version="v1.8.0", force=True)
    known = upgrading(states={"n1": "x"}).status
    found.set_status(
        currentPhase="MetadataPopulated", previousVersion="v1.9.0", releaseMetadata=known["releaseMetadata"]
    )
    found.rounds()
    assert found.phase == "ImagePreloading"


@pytest.mark.parametrize(
    ("state", "job_state"),
    [("ImagePreloading", "ImagePreloaded"), ("PreDrained", "PreDrained")],
    ids=["ac-71", "ac-77"],
)
def test_a_preload_job_tells_its_nodes_state(state: str, job_state: str) -> None:
    found = preloading()
    found.set_status(nodeUpgradeStatuses={"n1": {"state": state}})
    labels = {
        f"{PREFIX}upgrade-plan": "up",
        f"{PREFIX}upgrade-component": "image-preload",
        "upgrade.cattle.io/node": "n1",
    }
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    found.create(
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "preload-n1", "namespace": "cattle-system", "labels": labels},
            "spec": {"template": {"spec": pod}},
        }
    )
    found.end_job("preload-n1")
    found.rounds()
    assert found.state("n1") == job_state


# ------------------------------------------------------------------------------------------------------ cluster upgrade


def test_the_pointer_is_added_once() -> None:
    found = preloading(imagePreloadOption={"concurrency": -1})
    found.restart()
    found.rounds()
    chart = found.get("management.cattle.io/v3", "ManagedChart", "harvester", "fleet-local")
    (patch,) = chart["spec"]["diff"]["comparePatches"]
    assert len(patch["jsonPointers"]) == 1
    virtual = found.get("kubevirt.io/v1", "KubeVirt", "kubevirt", "harvester-system")
    assert virtual["spec"]["workloadUpdateStrategy"]["workloadUpdateMethods"] == []
    assert [loan.original.value for loan in status_of(found.plan).loans if loan.ref.kind == "KubeVirt"] == [
        ["LiveMigrate", "Evict"]
    ]


@pytest.mark.slow
@pytest.mark.parametrize("missing", [("KubeVirt",), ("KubeVirt", "ManagedChart")])
def test_what_is_absent_is_left_out(missing: tuple[str, ...]) -> None:
    found = world(without=missing, imagePreloadOption={"concurrency": -1}, version="v1.8.0")
    known = upgrading(states={"n1": "x"}).status
    found.set_status(currentPhase="MetadataPopulated", **{k: known[k] for k in ("previousVersion", "releaseMetadata")})
    found.rounds()
    assert found.phase == "ClusterUpgrading"
    borrowed = sorted(loan.ref.kind for loan in status_of(found.plan).loans)
    assert borrowed == sorted({"KubeVirt", "ManagedChart"} - set(missing))


def test_the_world_has_what_the_cases_speak_of() -> None:
    assert {kubevirt()["kind"], managed_chart()["kind"]} <= {
        body["kind"] for body in world().scene.cluster.store.everything()
    }
