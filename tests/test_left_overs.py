"""Drain hooks of a built-in upgrade that is gone are not given back: Rancher would wait for an answer of nobody."""

from __future__ import annotations

from typing import Any

from support.small_cluster import METADATA, PRE_JOB, Small, being_prepared, cluster, upgrading

HOOKS = {"preDrainHooks": [{"annotation": "harvesterhci.io/pre-hook"}], "timeout": 30, "force": False}
STRATEGY = {"controlPlaneConcurrency": "10%", "controlPlaneDrainOptions": {"enabled": True, **HOOKS}}
REASON = "LeftOverNotReturned"


def borrowing(strategy: dict[str, Any]) -> Small:
    """The hooks of the upgrade have been set in a Cluster that had this strategy."""
    there = cluster()
    there["spec"]["rkeConfig"]["upgradeStrategy"] = strategy
    accepted = {"management.harvesterhci.io/accept-risk": "built-in-drain-hooks"}
    found = upgrading("n1", "n2", states={}, more=[there])
    found.patch(found.plan, {"metadata": {"annotations": accepted}})
    found.set_status(currentPhase="ClusterUpgraded", releaseMetadata=METADATA)
    found.rounds()
    found.end_plan("up-skip-manifest-apply")
    found.rounds()
    return found


def options(found: Small) -> Any:
    live = found.get("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")
    return live["spec"]["rkeConfig"]["upgradeStrategy"]["controlPlaneDrainOptions"]


def returned(found: Small) -> Any:
    """The plan fails and is deleted, which gives back all that was borrowed."""
    being_prepared(found)
    found.end_job(PRE_JOB, failed=True)
    found.rounds()
    found.delete_plan()
    found.rounds()
    found.end_plan("up-skip-manifest-remove")
    found.rounds()
    return options(found)


def test_hooks_that_were_left_over_are_not_given_back_and_an_event_says_so() -> None:
    found = borrowing(STRATEGY)
    assert options(found)["preDrainHooks"] == [{"annotation": "management.harvesterhci.io/pre-hook"}]
    (told,) = [note for reason, note in found.events() if reason == REASON]
    assert "spec.rkeConfig.upgradeStrategy.controlPlaneDrainOptions.preDrainHooks was left over" in told
    assert told.endswith('[{"annotation": "harvesterhci.io/pre-hook"}]')
    assert returned(found) == {"enabled": True, "timeout": 30, "force": False}


def test_hooks_of_somebody_else_go_back() -> None:
    theirs = [{"annotation": "example.com/pre-hook"}]
    found = borrowing({**STRATEGY, "controlPlaneDrainOptions": {"enabled": True, "preDrainHooks": theirs}})
    assert [reason for reason, _ in found.events() if reason == REASON] == []
    assert returned(found) == {"enabled": True, "preDrainHooks": theirs}
