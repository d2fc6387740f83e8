"""What the loop says while it does not get on: since when, that it takes long, what cannot be finished, once each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.rendered_plans import Json, machine, machine_plan, plan, server_version, version
from support.small_cluster import (
    METADATA,
    PRE,
    PRE_JOB,
    PREFIX,
    Small,
    being_prepared,
    node,
    rebooting,
    upgrading,
    waiting_for_rancher,
    world,
)

from reconcile.cluster.errors import Away
from reconcile.loop.logs import LogLevel
from reconcile.loop.reconciler import Reconciler
from reconcile.loop.round_log import RoundLog
from reconcile.report.progress import progress_of
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from reconcile.status.plan import FAILED, SUCCEEDED
from reconcile.status.times import time_text
from renderer.model.ref import ref_of
from renderer.render.seal import APPROVED

pytestmark = pytest.mark.slow


def later(found: Small, **span: float) -> None:
    found.scene.clock.advance(timedelta(**span).total_seconds())


def test_a_machine_that_rancher_never_picks_is_said_to_take_long() -> None:
    found = waiting_for_rancher()
    began = found.scene.clock.now()
    later(found, hours=1)
    waits = found.rounds().decision.waits  # type: ignore[union-attr]
    assert {(wait.since, wait.slow) for wait in waits} == {(began, False)}
    later(found, hours=2)
    found.rounds()
    degraded = found.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "WaitingLong")
    assert "waiting for Rancher to request the drain of this node since 2026-01-01T00:00:0" in degraded["message"]
    assert degraded["message"].endswith("Z, longer than 2h")
    found.ask("n1", PRE, "first")
    found.rounds()
    assert found.condition("Degraded")["status"] == "False"  # it goes on, and the other node's turn comes later


def waits_of(found: Small, node: str) -> list[tuple[str, datetime | None]]:
    decision = found.rounds().decision
    assert decision is not None
    return [(wait.text, wait.since) for wait in decision.waits if wait.node == node]


def test_a_wait_holds_since_its_own_beginning_whatever_other_nodes_do() -> None:
    found = waiting_for_rancher()
    began = found.scene.clock.now()
    later(found, minutes=10)
    rebooting(found)
    later(found, minutes=10)
    found.reboot("n1")
    assert waits_of(found, "n2") == [("waiting for Rancher to request the drain of this node", began)]
    found.restart()
    assert waits_of(found, "n2") == [("waiting for Rancher to request the drain of this node", began)]


def test_a_node_that_joins_waits_since_it_joined() -> None:
    found = waiting_for_rancher()
    later(found, minutes=10)
    for body in (node("n3"), machine("m-n3", "n3"), machine_plan("p-n3", "m-n3")):
        found.create(body)
    joined = found.scene.clock.now()
    [(text, since)] = waits_of(found, "n3")
    assert since == joined
    later(found, minutes=10)
    assert waits_of(found, "n3") == [(text, joined)]


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"nodeUpgradeOption": {"pauseNodes": ["n2"]}}, "node upgrade paused: n2"),
        ({}, "another node is being drained or upgraded: n1"),
    ],
)
def test_what_no_step_records_holds_since_it_was_first_seen(spec: dict[str, Any], text: str) -> None:
    """A node that is paused, or that Rancher asked for out of turn: over a restart, and until it is over."""
    found = being_prepared()
    later(found, minutes=10)
    found.patch(found.plan, {"spec": spec})
    found.ask("n2", PRE, "early")
    began = found.scene.clock.now()
    assert waits_of(found, "n2") == [(text, began)]
    later(found, minutes=10)
    found.restart()
    assert waits_of(found, "n2") == [(text, began)]
    assert list(found.status["waitingSince"].values()) == [time_text(began)]
    found.ask("n2", PRE, None)
    found.rounds()
    assert "waitingSince" not in found.status


def test_an_approval_that_is_missing_is_missed_since_it_was_noticed() -> None:
    found = world()
    later(found, minutes=10)
    found.patch(found.plan, {"metadata": {"annotations": {APPROVED: "{}"}}})
    found.patch(found.plan, {"metadata": {"annotations": {APPROVED: '{"Other": "sha256:0"}'}}})
    began = found.scene.clock.now()
    found.rounds()
    later(found, minutes=10)
    found.restart()
    decision = found.rounds().decision
    assert decision is not None
    assert [(wait.text, wait.since) for wait in decision.waits] == [("phase Initialize was not approved", began)]


def test_a_refusal_that_is_known_is_not_reported_again_by_the_next_process() -> None:
    found = world()
    found.rounds()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.INVALID, verb="apply", count=1000))
    found.set_status(currentPhase="ISODownloaded", isoImageID="up-iso")
    found.rounds()
    found.rounds()
    degraded = found.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ReconcileError")
    events = found.events()
    later(found, minutes=10)
    found.restart()
    seen = []
    for _ in range(4):
        found.round()
        seen.append(found.condition("Degraded"))
    assert seen == [degraded] * 4
    assert found.events() == events
    found.scene.client.faults.clear()
    found.restart()
    found.rounds()
    assert found.condition("Degraded")["status"] == "False"


def test_a_node_that_is_held_takes_as_long_as_its_operator_likes() -> None:
    found = waiting_for_rancher()
    found.patch(found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": ["n1", "n2"]}}})
    for name in ("n1", "n2"):
        found.ask(name, PRE, "first")
    found.rounds()
    later(found, days=3)
    found.rounds()
    assert found.condition("Degraded")["status"] == "False"


def test_a_repository_that_does_not_answer_is_said_to_take_long() -> None:
    found = world()
    found.set_status(currentPhase="RepoCreated", previousVersion="v1.7.1", isoImageID="up-iso")
    found.rounds()
    assert found.phase == "MetadataPopulating"
    assert found.condition("Degraded")["status"] == "False"
    later(found, minutes=20)
    found.rounds()
    assert found.condition("Degraded")["reason"] == "WaitingLong"
    assert "harvester-release.yaml" in found.condition("Degraded")["message"]
    assert found.condition("Degraded")["message"].endswith(", longer than 15m")


def test_who_looks_sees_what_is_refused_to_the_manager() -> None:
    """`status` writes nothing, so nothing is refused to it."""
    found = world()
    found.rounds()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.INVALID, verb="apply", count=1000))
    found.set_status(currentPhase="ISODownloaded", isoImageID="up-iso")
    found.rounds()
    found.rounds()
    shown = progress_of(Reconciler(found.scene.deps).look(found.name), found.scene.clock.now())
    assert shown["problems"] == [found.condition("Degraded")["message"]]
    assert shown["next"] == f"upgradeplan explain {found.name}"
    found.scene.client.faults.clear()
    found.restart()
    found.rounds()
    assert not progress_of(Reconciler(found.scene.deps).look(found.name), found.scene.clock.now())["problems"]


def test_an_ending_that_cannot_be_finished_is_degraded() -> None:
    found = waiting_for_rancher()
    found.ask("n1", PRE, "first")
    found.rounds()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.INVALID, verb="patch", kind="Setting", count=1000))
    found.end_job("up-node-upgrade-pre-drain-n1", failed=True)
    found.rounds()
    found.end_plan("up-skip-manifest-remove")
    for _ in range(3):
        found.rounds()
    assert found.phase == FAILED
    assert found.condition("Degraded")["reason"] == "ReconcileError"
    assert "Setting longhorn-system/replica-replenishment-wait-interval" in found.condition("Degraded")["message"]


def test_what_is_left_undone_is_told_once() -> None:
    found = waiting_for_rancher()
    found.delete_plan()
    found.rounds()
    later(found, hours=1)
    for _ in range(4):
        found.round()
    told = [reason for reason, _ in found.events() if reason == "UndoGivenUp"]
    assert told == ["UndoGivenUp"]


@pytest.mark.parametrize("away_after", range(4))
def test_no_event_is_lost_because_the_server_went_away(away_after: int) -> None:
    found = upgrading("n1", states={"n1": "ImageCleaned"})
    found.set_status(currentPhase="CleanedUp")
    found.round()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.AWAY, verb="patch", skip=away_after))
    for _ in range(30):
        try:
            done = found.round()
        except Away:
            continue
        for item in found.all("Plan"):
            found.end_plan(item["metadata"]["name"])
        if done.over:
            break
    assert found.phase == SUCCEEDED
    assert [reason for reason, _ in found.events() if reason == "UpgradeSucceeded"] == ["UpgradeSucceeded"]


def test_a_node_in_trouble_stops_the_next_one() -> None:
    """Field rule 15: two nodes that are down at once are more than the volumes bear."""
    found = waiting_for_rancher()
    ready(found, "n2", "Unknown")
    found.ask("n1", PRE, "first")
    done = found.rounds()
    assert done.decision is not None
    assert [wait.text for wait in done.decision.waits if wait.node == "n1"] == [
        "another node is not ready: Node n2: condition Ready is Unknown, expected True"
    ]
    assert found.jobs() == []
    later(found, hours=3)
    found.rounds()
    assert found.condition("Degraded")["reason"] == "WaitingLong"
    ready(found, "n2", "True")
    found.rounds()
    assert found.jobs() == ["up-node-upgrade-pre-drain-n1"]


def ready(found: Small, name: str, status: str) -> None:
    conditions = [{"type": "Ready", "status": status}]
    found.patch(found.get("v1", "Node", name), {"status": {"conditions": conditions}}, "status")


def test_a_node_that_joins_is_shown_where_the_others_start() -> None:
    found = waiting_for_rancher()
    for body in (node("n3"), machine("m-n3", "n3"), machine_plan("p-n3", "m-n3")):
        found.create(body)
    found.rounds()
    assert found.state("n3") == "ImagePreloaded"


def test_hooks_that_somebody_has_taken_away_are_missed() -> None:
    """Field rules 2 and 13: without them Rancher goes on without asking."""
    found = waiting_for_rancher()
    assert found.condition("Degraded")["status"] == "False"
    cluster = found.get("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")
    stripped = {"controlPlaneDrainOptions": None, "workerDrainOptions": None}
    found.patch(cluster, {"spec": {"rkeConfig": {"upgradeStrategy": stripped}}})
    found.rounds()
    assert found.condition("Degraded")["reason"] == "WaitingLong"
    said = "Cluster fleet-local/local spec.rkeConfig.upgradeStrategy.controlPlaneDrainOptions was changed by somebody"
    assert said in found.condition("Degraded")["message"]


# ------------------------------------------------------------------------------------------------ who has to do what


def test_a_version_that_is_missing_is_named_at_once_and_awaited() -> None:
    found = world(without=["Version"])
    [wait] = found.rounds().decision.waits  # type: ignore[union-attr]
    said = "Version harvester-system/v1.8.0 not found; create it in namespace harvester-system"
    assert (wait.text, wait.slow, [*map(str, wait.refs)]) == (said, True, ["Version harvester-system/v1.8.0"])
    assert (found.condition("Degraded")["status"], found.phase) == ("True", "Initializing")
    assert said in found.condition("Degraded")["message"]
    found.create(version())
    found.rounds()
    assert found.condition("Degraded")["status"] == "False"
    assert found.phase == "ISODownloading"


def test_a_version_in_the_usual_wrong_namespace_is_pointed_at() -> None:
    found = world(without=["Version"])
    misplaced = version()
    found.create({**misplaced, "metadata": {**misplaced["metadata"], "namespace": "default"}})
    [wait] = found.rounds().decision.waits  # type: ignore[union-attr]
    said = "Version harvester-system/v1.8.0 not found; there is one in default: create it in namespace harvester-system"
    assert wait.text == said


@pytest.mark.parametrize(
    ("more", "without", "text"),
    [
        ([], ["Setting"], "Setting server-version not found; it says which release is installed"),
        ([server_version(None)], [], "Setting server-version: value is not set; it says which release is installed"),
    ],
)
def test_an_installed_version_that_is_missing_is_named(more: list[Json], without: list[str], text: str) -> None:
    found = world(without=without, more=more)
    assert [(wait.text, wait.slow) for wait in found.rounds().decision.waits] == [(text, True)]  # type: ignore[union-attr]


def test_what_lets_a_version_pass_is_a_warning() -> None:
    forced, without_minimum = world(version="v1.8.0", force=True), world()
    forced.set_status(currentPhase="MetadataPopulated", previousVersion="v1.9.0", releaseMetadata=METADATA)
    lax = {**METADATA, "minUpgradableVersion": None}
    without_minimum.set_status(currentPhase="MetadataPopulated", previousVersion="v1.7.1", releaseMetadata=lax)
    warnings = []
    for found in (forced, without_minimum):
        found.rounds()
        assert found.phase == "ImagePreloading"
        warnings += [text for reason, text in found.events() if reason == "StepWarning"]
    assert warnings == [
        "spec.force skips the version guard: current v1.9.0, target v1.8.0, minimum v1.7.0",
        "release v1.8.0 has no minUpgradableVersion, so nothing restricts the version to upgrade from",
    ]


def test_a_version_beside_an_image_is_a_warning() -> None:
    found = world(version="v1.8.0", image="mine")
    found.rounds()
    told = [text for reason, text in found.events() if reason == "StepWarning"]
    assert told == ["spec.version is ignored: spec.image names the ISO"]


# --------------------------------------------------------------------------------------------------- what comes late


def test_an_image_that_stays_does_not_keep_a_plan_that_has_succeeded() -> None:
    found = world()
    found.rounds()
    [image] = found.all("VirtualMachineImage")
    found.patch(image, {"metadata": {"finalizers": ["example.com/keep"]}})
    found.set_status(currentPhase="CleanedUp")
    found.rounds()
    assert found.phase == "CleanedUp"
    later(found, minutes=16)
    found.rounds()
    assert found.phase == SUCCEEDED
    [told] = [text for reason, text in found.events() if reason == "CleanupGivenUp"]
    assert told == f"left behind: {ref_of(image)} is being deleted, waiting for finalizer example.com/keep"


RESTORE_LIST: Json = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "up-restore-vm", "namespace": "harvester-system"},
    "data": {"n1": "default/vm"},
}


@pytest.mark.parametrize("phase", ["NodeUpgrading", "NodeUpgraded", "CleanedUp"])
def test_what_was_stopped_is_restored_although_that_is_asked_for_late(phase: str) -> None:
    found = rebooting()
    found.create(RESTORE_LIST)
    found.reboot("n1")
    found.rounds()
    assert "RestoreVM" in found.status["steps"]["NodeUpgrade"]["done"]["n1"]
    if phase != "NodeUpgrading":
        found.set_status(currentPhase=phase)
    found.patch(found.plan, {"spec": {"restoreVM": True}})
    found.round()
    found.round()
    assert "up-node-upgrade-restore-vm-n1" in found.jobs()
    assert "up-node-upgrade-restore-vm-n2" not in found.jobs()
    events = [reason for reason, _ in found.events()]
    assert events.count("RestoreVMJobDispatched") == 1


LONG_PLAN = "an-upgrade-of-the-cluster-in-the-second-data-centre-012345"


@pytest.mark.parametrize(
    "name",
    [
        "an-upgrade-of-the-cluster-in-the-second-data-centre-01-c891acf2",
        "an-upgrade-of-the-cluster-in-the-second-data-centre-01234-c891a",
    ],
    ids=["the detector's name", "the other name"],
)
def test_the_restore_list_of_a_long_plan_is_found_under_either_name(name: str) -> None:
    states = {"n1": "PostDrained", "n2": "ImagePreloaded"}
    found = upgrading(given=plan(LONG_PLAN, version="v1.8.0", restoreVM=True), states=states)
    found.create({**RESTORE_LIST, "metadata": {**RESTORE_LIST["metadata"], "name": name}})
    found.until(lambda _: "RestoreVM/n1" in found.status["steps"]["NodeUpgrade"]["records"])
    assert found.status["steps"]["NodeUpgrade"]["records"]["RestoreVM/n1"]["captured"] == {"restoredVMs": "default/vm"}
    found.rounds()
    [job] = found.all("Job")
    assert job["metadata"]["labels"][f"{PREFIX}job-type"] == "restore-vm"


def test_what_stays_skipped_is_not_written_again() -> None:
    found = rebooting()
    found.reboot("n1")
    found.patch(found.plan, {"spec": {"restoreVM": True}})
    found.rounds()
    version_before = found.plan["metadata"]["resourceVersion"]
    later(found, minutes=1)
    found.rounds()
    assert found.plan["metadata"]["resourceVersion"] == version_before


def test_all_paused_nodes_are_named_until_they_are_held_no_more() -> None:
    found = waiting_for_rancher(nodeUpgradeOption={"pauseNodes": ["n1", "n2"]}, version="v1.8.0")
    for name in ("n1", "n2"):
        found.ask(name, PRE, "first")
        found.rounds()
        found.ask(name, PRE, None)
    found.rounds()
    assert (found.state("n1"), found.state("n2")) == ("UpgradePaused", "UpgradePaused")
    assert found.condition("Progressing")["message"] == "node upgrade paused: n1, n2"
    found.patch(found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": ["n2"]}}})
    found.rounds()
    assert found.status["nodeUpgradeStatuses"]["n1"] == {"state": "ImagePreloaded"}
    assert found.condition("Progressing")["message"] == "node upgrade paused: n2"
    found.patch(found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": []}}})
    found.rounds()
    assert (found.state("n2"), found.condition("Progressing")["message"]) == ("ImagePreloaded", "")


def test_a_plan_that_does_not_progress_blocks_nobody() -> None:
    found = world(given=plan(name="zz"))
    older = plan(name="aa")
    found.create(older)
    other = Small(scene=replace(found.scene, name="aa"))
    at_rest = {
        "type": "Progressing",
        "status": "False",
        "reason": "Failed",
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    other.set_status(currentPhase="NodeUpgrading", conditions=[at_rest])
    found.rounds()
    assert found.phase == "ISODownloading"
    other.rounds()
    assert other.condition("Available")["reason"] == "ConcurrentUpgradeBlocked"


# ------------------------------------------------------------------------------------- nodes on which nothing would run


def test_a_cluster_of_witnesses_alone_is_said_to_be_one_at_once() -> None:
    found = world("n1", "n2", more=[node("n1", witness=True), node("n2", witness=True)])
    found.rounds()
    degraded = found.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "ReconcileError")
    assert degraded["message"].startswith("every managed node is a witness")
    assert "n1, n2 (remedy: add a node that is not a witness" in degraded["message"]
    assert nothing_is_made(found)


def test_nodes_that_no_job_would_find_are_named_and_nothing_begins_until_it_would() -> None:
    found = world("n1", "n2", "n3")
    for name in ("n1", "n3"):
        found.patch(found.get("v1", "Node", name), {"metadata": {"labels": {"kubernetes.io/hostname": None}}})
    found.rounds()
    assert "by which its Jobs find a node, on Node n1, n3" in found.condition("Degraded")["message"]
    assert nothing_is_made(found)
    for name in ("n1", "n3"):
        found.patch(found.get("v1", "Node", name), {"metadata": {"labels": {"kubernetes.io/hostname": name}}})
    found.rounds()
    assert (found.phase, found.condition("Degraded")["status"]) == ("ISODownloading", "False")


def test_a_plan_that_has_begun_is_not_held_by_a_label_that_is_lost() -> None:
    found = being_prepared()
    found.patch(found.get("v1", "Node", "n2"), {"metadata": {"labels": {"kubernetes.io/hostname": None}}})
    found.rounds()
    assert found.condition("Degraded")["status"] == "False"


def nothing_is_made(found: Small) -> bool:
    made = [body for kind in ("VirtualMachineImage", "Deployment", "Job", "Plan") for body in found.all(kind)]
    return not made and not found.phase and "finalizers" not in found.plan["metadata"]


# ------------------------------------------------------------------------------------------------- one set of words


def test_a_reboot_is_waited_for_in_words_wherever_the_wait_is_shown() -> None:
    found = rebooting()
    said = "waits for n1 to come back: still Harvester v1.7.1, not rebooted yet"
    assert found.condition("Ready")["message"].startswith(f"{said}; ")
    lines: list[Mapping[str, Any]] = []
    log = RoundLog(lambda what, fields: lines.append(fields) if what == "waiting" else None)
    later(found, minutes=31)
    log(found.rounds())
    assert [line["why"] for line in lines] == [said, "waiting for Rancher to request the drain of this node"]
    assert (lines[0]["step"], lines[0]["node"], lines[0]["object"]) == ("Reboot", "n1", "Node n1")
    assert lines[0]["level"] is LogLevel.WARNING
    degraded = found.condition("Degraded")
    assert degraded["reason"] == "WaitingLong"
    assert f"; NodeUpgrade/Reboot/n1: {said} since " in degraded["message"]
    assert "bootID" not in str(found.status["conditions"])


def test_a_misspelt_entry_of_the_pause_list_never_holds_nobody() -> None:
    """Written in the middle of an upgrade, with the webhook down: no node begins until it is corrected."""
    found = waiting_for_rancher()
    found.patch(found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": ["n22"]}}})
    found.ask("n1", PRE, "x1")
    done = found.rounds()
    assert PRE_JOB not in found.jobs()
    assert done.decision is not None
    assert any("Node n22 does not exist; did you mean n2?" in wait.text for wait in done.decision.waits)
    found.patch(found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": ["n2"]}}})
    found.rounds()
    assert PRE_JOB in found.jobs()


def test_a_condition_holds_no_longer_message_than_the_api_server_takes() -> None:
    found = being_prepared()
    found.end_job(PRE_JOB, failed=True, message="no room " * 5_000)
    found.until(lambda _: found.phase == "Failed")
    message = found.condition("Degraded")["message"]
    assert len(message) <= 32_768
    assert "no room no room" in message


def test_a_failed_plan_says_what_its_end_waits_for() -> None:
    found = being_prepared()
    found.end_job(PRE_JOB, failed=True)
    found.rounds()
    assert found.phase == "Failed"
    assert found.condition("Stalled")["status"] == "False"
    assert found.condition("Reconciling")["message"].startswith("Plan cattle-system/up-skip-manifest-remove: ")
