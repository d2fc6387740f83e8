"""What the loop says while it does not get on: since when, that it takes long, what cannot be finished, once each."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.rendered_plans import machine, machine_plan
from support.small_cluster import PRE, Small, node, upgrading, waiting_for_rancher, world

from reconcile.cluster.errors import Away
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from reconcile.status.plan import FAILED, SUCCEEDED


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
