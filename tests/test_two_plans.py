"""A plan that has failed keeps the drain hooks; the next one needs them, and gives back what stood before the first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.rendered_plans import plan
from support.small_cluster import PRE, PRE_JOB, STRATEGY, Small, waiting_for_rancher, world

from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from reconcile.status.plan import FAILED, SUCCEEDED
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Ref

pytestmark = pytest.mark.slow


def strategy(found: Small) -> Any:
    spec = found.get("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")["spec"]
    return spec["rkeConfig"].get("upgradeStrategy")


def failed_in_the_middle() -> Small:
    """Plan `up` has failed in its node upgrade; its hooks are on loan."""
    found = waiting_for_rancher()
    found.ask("n1", PRE, "first")
    found.rounds()
    found.end_job(PRE_JOB, failed=True)
    found.rounds()
    found.end_plan("up-skip-manifest-remove")
    found.rounds()
    assert found.phase == FAILED
    assert strategy(found) != STRATEGY
    return found


def second_under_way(found: Small) -> Small:
    """Plan `again` in its node upgrade, in the same cluster."""
    found.create(plan(name="again"))
    again = Small(scene=replace(found.scene, name="again"))
    status = {key: found.status[key] for key in ("previousVersion", "releaseMetadata", "version")}
    again.set_status(**status, currentPhase="ClusterUpgraded")
    again.rounds()
    again.end_plan("again-skip-manifest-apply")
    again.rounds()
    assert again.phase == "NodeUpgrading"
    return again


def delete_first(found: Small) -> None:
    kind = found.scene.deps.kinds.row(PLAN_API_VERSION, "UpgradePlan").kind
    first = Ref(api_version=PLAN_API_VERSION, kind="UpgradePlan", name="up")
    found.scene.cluster.client().delete(kind, first)
    for _ in range(20):
        found.scene.reconciler.round("up")
        found.scene.cluster.collect()
    assert found.scene.cluster.store.find(first) is None


def test_the_second_plan_takes_the_loans_over_and_the_first_one_lets_go() -> None:
    again = second_under_way(failed_in_the_middle())
    hooks = strategy(again)
    delete_first(again)
    assert strategy(again) == hooks  # Rancher still asks before each drain
    assert "stays with again, which returns it" in str(again.events())
    again.set_status(currentPhase="CleanedUp")
    again.to_its_end()
    assert again.phase == SUCCEEDED
    assert strategy(again) == STRATEGY


def test_the_second_plan_gives_back_what_stood_before_the_first() -> None:
    again = second_under_way(failed_in_the_middle())
    again.set_status(currentPhase="CleanedUp")
    again.to_its_end()
    assert strategy(again) == STRATEGY
    delete_first(again)
    assert strategy(again) == STRATEGY


def test_what_an_operator_has_put_there_in_between_is_what_goes_back() -> None:
    found = failed_in_the_middle()
    own = {"controlPlaneConcurrency": "3"}
    cluster = found.get("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")
    found.patch(cluster, {"spec": {"rkeConfig": {"upgradeStrategy": own}}})
    again = second_under_way(found)
    again.set_status(currentPhase="CleanedUp")
    again.to_its_end()
    assert strategy(again)["controlPlaneConcurrency"] == "3"


def test_that_nobody_could_look_for_other_upgrades_is_no_other_upgrade() -> None:
    found = world()
    from_files = found.scene.deps
    found.read_directly()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.FAILED, verb="list", kind="Upgrade"))
    done = found.round()
    assert done.decision is not None
    assert [wait.unknown for wait in done.decision.waits] == [True]
    assert found.events() == []
    assert found.condition("Available") is None
    found.scene.deps = from_files
    found.restart()
    found.rounds()
    assert found.phase == "ISODownloading"


def built_in() -> Any:
    return {
        "apiVersion": "harvesterhci.io/v1beta1",
        "kind": "Upgrade",
        "metadata": {
            "name": "late",
            "namespace": "harvester-system",
            "labels": {"harvesterhci.io/upgradeState": "UpgradingNodes"},
        },
        "spec": {"version": "v1.8.0"},
    }


def test_a_built_in_upgrade_that_is_begun_later_keeps_the_plan_before_its_next_phase() -> None:
    found = world()
    found.rounds()
    assert found.phase == "ISODownloading"
    found.create(built_in())
    [image] = found.all("VirtualMachineImage")
    imported = {"type": "Imported", "status": "True"}
    found.patch(image, {"status": {"conditions": [imported], "progress": 100}})
    found.rounds()
    found.rounds()
    assert found.phase == "ISODownloaded"
    text = 'the built-in upgrade "late" is running as well'
    assert found.condition("Degraded")["status"] == "True"
    assert found.condition("Degraded")["message"].startswith(f"{text}; this plan does not enter its next phase")
    assert [told for reason, told in found.events() if reason == "ConcurrentUpgrade"] == [text]
    [late] = found.all("Upgrade")
    found.patch(late, {"metadata": {"labels": {"harvesterhci.io/upgradeState": "Failed"}}})
    found.rounds()
    assert found.phase == "RepoCreating"


def test_a_half_upgraded_cluster_is_not_left_for_a_built_in_upgrade() -> None:
    found = waiting_for_rancher(version="v1.8.0")
    found.create(built_in())
    found.ask("n1", PRE, "first")
    found.rounds()
    assert PRE_JOB in found.jobs()
    assert "this plan continues, because the cluster is half upgraded" in found.condition("Degraded")["message"]
