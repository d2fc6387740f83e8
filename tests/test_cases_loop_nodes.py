"""What the loop does in the node upgrade, the hand-shake with Rancher, and cleanup, situation by situation.

Each test is named after its case. Where we differ on purpose (DESIGN, "Deliberate differences"), ours is asserted and
the test says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from support.manual_actors import ManualActors
from support.recordings import recording
from support.rendered_plans import NODE_STATES, plan
from support.small_cluster import (
    NEW_OS,
    POST,
    POST_HOOK,
    POST_JOB,
    PRE,
    PRE_HOOK,
    PRE_JOB,
    PREFIX,
    STRATEGY,
    Small,
    cluster,
    descheduler,
    drained,
    facts,
    longhorn,
    node,
    rebooting,
    upgrading,
    waiting_for_rancher,
    world,
)

from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from reconcile.status.plan import FAILED, SUCCEEDED

SINGLE_JOB = "up-node-upgrade-single-node-upgrade-n1"


def local(found: Small) -> Any:
    return found.get("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")["spec"]


def setting(found: Small) -> str:
    value: str = found.get("longhorn.io/v1beta2", "Setting", "replica-replenishment-wait-interval", "longhorn-system")[
        "value"
    ]
    return value


def provisioned(*, paused: tuple[str, ...] = (), **more: Any) -> Small:
    """Two nodes at the start of a node upgrade of our own, that Rancher has been told of."""
    spec: dict[str, Any] = {"version": "v1.8.0", **more}
    if paused:
        spec["nodeUpgradeOption"] = {"pauseNodes": list(paused)}
    return waiting_for_rancher(**spec)


def alone(**more: Any) -> Small:
    found = upgrading("n1", states={}, **more)
    found.set_status(currentPhase="ClusterUpgraded", singleNode="n1")
    found.rounds()
    return found


# ---------------------------------------------------------------------------------------------- Jobs, and their nodes


@pytest.mark.slow
def test_our_jobs_are_never_suspended() -> None:
    """Ours differs: a pause holds what has not started, so there is nothing to suspend."""
    found = provisioned(paused=("n1",))
    found.ask("n1", PRE, "x")
    found.rounds()
    assert found.jobs() == []
    assert [body["spec"].get("suspend") for body in drained().all("Job")] == [False]  # as the server defaults it


@pytest.mark.slow
@pytest.mark.parametrize(("paused", "held"), [((), False), (("n2",), False), (("n1",), True)])
def test_only_a_listed_node_is_held(paused: tuple[str, ...], held: bool) -> None:
    found = provisioned(paused=paused)
    found.ask("n1", PRE, "x")
    found.rounds()
    assert (found.jobs() == []) == held
    assert found.state("n1") == ("UpgradePaused" if held else "PreDraining")
    if held:
        assert found.status["nodeUpgradeStatuses"]["n1"]["reason"] == "AdministrativelyPaused"
        assert found.condition("Progressing")["message"] == "node upgrade paused: n1"


@pytest.mark.slow
def test_the_answer_is_what_rancher_wrote() -> None:
    found = drained()
    assert found.state("n1") == "PreDrained"
    assert found.annotation("n1", PRE_HOOK) == "first"
    assert found.annotation("n2", PRE_HOOK) is None


@pytest.mark.slow
@pytest.mark.parametrize("state", ["PostDraining", "WaitingReboot"])
def test_a_node_does_not_go_back(state: str) -> None:
    found = provisioned()
    found.ask("n1", PRE, "first")
    found.rounds()
    found.set_status(nodeUpgradeStatuses={"n1": {"state": state}})
    found.end_job(PRE_JOB)
    found.rounds()
    assert found.state("n1") == state


@pytest.mark.slow
def test_a_failed_pre_drain_ends_the_plan_and_keeps_the_hooks() -> None:
    found = provisioned()
    found.ask("n1", PRE, "first")
    found.rounds()
    found.end_job(PRE_JOB, failed=True, message="it would not drain")
    found.rounds()
    assert (found.phase, found.state("n1")) == (FAILED, "PreDrainFailed")
    assert found.condition("Progressing")["message"] == "node n1 upgrade failed: it would not drain"
    assert found.jobs() == [PRE_JOB]
    assert found.annotation("n1", PRE_HOOK) is None


@pytest.mark.slow
def test_the_single_nodes_job() -> None:
    found, failing = alone(), alone()
    assert found.state("n1") == "SingleNodeUpgrading"
    found.end_job(SINGLE_JOB)
    found.rounds()
    assert found.state("n1") == "WaitingReboot"
    annotations = found.get("v1", "Node", "n1")["metadata"]["annotations"]
    assert annotations[f"{PREFIX}pendingOSImage"] == NEW_OS
    failing.end_job(SINGLE_JOB, failed=True, message="no")
    failing.rounds()
    assert (failing.phase, failing.state("n1")) == (FAILED, "SingleNodeUpgradeFailed")


# ------------------------------------------------------------------------------------------------------ the hand-shake


@pytest.mark.parametrize("phase", ["ClusterUpgrading", "MetadataPopulating", "CleanedUp"])
def test_no_job_outside_the_node_upgrade(phase: str) -> None:
    found = upgrading("n1", "n2", states={})
    found.set_status(currentPhase=phase)
    found.ask("n1", PRE, "x")
    found.rounds()
    assert not [name for name in found.jobs() if "drain" in name]


def test_a_single_node_has_no_drain() -> None:
    found = alone()
    found.ask("n1", PRE, "x")
    found.rounds()
    assert found.jobs() == [SINGLE_JOB]


@pytest.mark.slow
def test_post_drain_comes_after_the_answer() -> None:
    found = drained()
    assert found.jobs() == [PRE_JOB]
    found.ask("n1", POST, "second")
    found.rounds()
    assert found.jobs() == [POST_JOB, PRE_JOB]
    assert found.state("n1") == "PostDraining"


MACHINE = {"cluster.x-k8s.io/machine": "m-n1"}


@pytest.mark.slow
def test_a_node_that_waits_for_its_reboot_is_not_acknowledged() -> None:
    """Whether the OS is another one or the same."""
    found = rebooting()
    assert found.state("n1") == "WaitingReboot"
    assert found.annotation("n1", POST_HOOK) is None
    assert found.get("v1", "Node", "n1")["metadata"]["annotations"] == {**MACHINE, f"{PREFIX}pendingOSImage": NEW_OS}
    found.reboot("n1")
    found.rounds()
    assert found.state("n1") == "PostDrained"
    assert found.annotation("n1", POST_HOOK) == "second"
    assert f"{PREFIX}pendingOSImage" not in found.get("v1", "Node", "n1")["metadata"].get("annotations", {})


def test_the_last_acknowledgement_is_repeated_after_the_last_node() -> None:
    """Rancher asks once more while the plan is in NodeUpgraded: it is answered, or nothing would ever go on."""
    found = upgrading(states={"n1": "PostDrained", "n2": "PostDrained"})
    found.ask("n1", POST, "asked-late")
    found.rounds()
    found.ask("n2", POST, "asked-later")
    found.rounds()
    assert (found.annotation("n1", POST_HOOK), found.annotation("n2", POST_HOOK)) == ("asked-late", "asked-later")


@pytest.mark.slow
def test_another_value_is_answered_and_the_job_is_not_repeated() -> None:
    found = drained()
    found.ask("n1", PRE, "first, again")
    found.rounds()
    assert found.annotation("n1", PRE_HOOK) == "first, again"
    assert found.jobs() == [PRE_JOB]


# ----------------------------------------------------------------------------------------------------- the node upgrade

ENDED, BROKEN = ("PostDrained", "SingleNodeUpgraded"), ("PreDrainFailed", "PostDrainFailed", "SingleNodeUpgradeFailed")
ON_THE_WAY = (
    *("ImagePreloading", "ImagePreloaded", "ImagePreloadFailed", "UpgradePaused"),
    *("PreDraining", "SingleNodeUpgrading", "PreDrained", "PostDraining", "WaitingReboot"),
    *("ImageCleaning", "ImageCleaned", "ImageCleanFailed"),
)


@pytest.mark.slow
def test_which_states_end_a_nodes_upgrade() -> None:
    """Seen by where the phase goes when another manager has left its last node so; alone where only a node alone is
    in that state."""
    reached: dict[str, set[str]] = {}
    for state in (row.name for row in NODE_STATES):
        only = state.startswith("SingleNode")
        found = upgrading(states={"n1": state} if only else {"n1": state, "n2": "PostDrained"})
        found.set_status(singleNode="n1" if only else None)
        found.rounds()
        reached.setdefault(found.phase, set()).add(state)
    assert reached == {"CleaningUp": {*ENDED}, FAILED: {*BROKEN}, "NodeUpgrading": {*ON_THE_WAY}}


def test_a_cluster_that_was_told_is_not_told_again() -> None:
    found = upgrading(states={"n1": "ImagePreloaded", "n2": "ImagePreloaded"})
    found.set_status(provisionGeneration=5)
    found.rounds()
    assert local(found) == cluster()["spec"]
    found.ask("n1", PRE, "x")
    found.rounds()
    assert found.jobs() == [PRE_JOB]


@pytest.mark.parametrize(("before", "after"), [(5, 6), (None, 1)])
def test_the_generation_goes_up_by_one(before: int | None, after: int) -> None:
    same = cluster(before, kubernetes="v1.35.2+rke2r1")
    found = provisioned(more=[same])
    assert local(found)["rkeConfig"]["provisionGeneration"] == found.status["provisionGeneration"] == after
    found.restart()
    found.rounds()
    assert local(found)["rkeConfig"]["provisionGeneration"] == after


def test_all_nodes_end_the_phase() -> None:
    found = upgrading(states={"n1": "PostDrained", "n2": "PostDrained"})
    found.until(lambda done: found.phase == "NodeUpgraded")
    other = upgrading(states={"n1": "PostDrained", "n2": "PreDraining"})
    other.rounds()
    assert other.phase == "NodeUpgrading"


@pytest.mark.slow
def test_a_failure_goes_before_a_pause() -> None:
    found = provisioned(paused=("n2",))
    found.ask("n1", PRE, "a")
    found.ask("n2", PRE, "b")
    found.rounds()
    found.end_job(PRE_JOB, failed=True, message="no")
    found.rounds()
    assert found.phase == FAILED
    assert found.condition("Progressing")["message"] == "node n1 upgrade failed: no"


def test_rancher_takes_the_last_acknowledgement() -> None:
    """Ours differs: it is a wait that says for which Secret, and no error."""
    found = upgrading(states={"n1": "PostDrained", "n2": "PostDrained"})
    found.ask("n2", POST, "x")
    found.rounds()
    assert found.phase == "NodeUpgraded"
    assert found.condition("Progressing")["message"] == "waiting for Rancher to complete node upgrades"
    assert found.condition("Degraded")["status"] == "False"
    found.ask("n2", POST, None)
    found.rounds()
    assert found.phase == "CleaningUp"


# ----------------------------------------------------------------------------------------------------------- cleanup


def cleaned_up(**more: Any) -> Small:
    found = upgrading("n1", "n2", states={"n1": "PostDrained", "n2": "PostDrained"}, **more)
    found.set_status(currentPhase="CleanedUp")
    return found


@pytest.mark.slow
def test_cleanup_of_nothing() -> None:
    found = world("n1", "n2", without=("KubeVirt", "ManagedChart", "Cluster"))
    found.set_status(currentPhase="CleanedUp", previousVersion="v1.7.1")
    found.to_its_end()
    assert found.phase == SUCCEEDED


def job(name: str, plan_name: str, job_type: str) -> dict[str, Any]:
    labels = {
        f"{PREFIX}upgrade-plan": plan_name,
        f"{PREFIX}upgrade-component": "node-upgrade",
        f"{PREFIX}job-type": job_type,
    }
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}
    metadata = {"name": name, "namespace": "harvester-system", "labels": labels}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {"spec": pod}}}


@pytest.mark.slow
def test_only_what_is_ours_goes() -> None:
    found = cleaned_up()
    kept = ["other-pre-drain", "up-node-upgrade-restore-vm-n1"]
    found.create(job(kept[0], "other", "pre-drain"))
    found.create(job(kept[1], "up", "restore-vm"))
    found.create(job(PRE_JOB, "up", "pre-drain"))
    found.create(job(POST_JOB, "up", "post-drain"))
    found.to_its_end()
    assert found.jobs() == kept


def test_a_strategy_that_we_did_not_set_stays() -> None:
    found = cleaned_up()
    found.to_its_end()
    assert local(found)["rkeConfig"]["upgradeStrategy"] == STRATEGY


@pytest.mark.slow
def test_only_our_annotation_leaves_the_node() -> None:
    found = rebooting()
    body = found.get("v1", "Node", "n1")
    found.patch(body, {"metadata": {"annotations": {"else": "kept"}}})
    found.reboot("n1")
    found.rounds()
    assert found.get("v1", "Node", "n1")["metadata"]["annotations"] == {**MACHINE, "else": "kept"}


@pytest.mark.slow
@pytest.mark.parametrize("enabled", [True, False])
def test_the_descheduler_is_as_it_was(enabled: bool) -> None:
    found = provisioned(more=[descheduler(enabled=enabled)])
    addon = ("harvesterhci.io/v1beta1", "Addon", "descheduler", "kube-system")
    assert found.get(*addon)["spec"]["enabled"] is False
    found.delete_plan()
    _abort(found)
    assert found.get(*addon)["spec"]["enabled"] is enabled


def _abort(found: Small) -> None:
    for _ in range(10):
        if found.rounds().over:
            return
        for item in found.all("Plan"):
            found.end_plan(item["metadata"]["name"])
    raise AssertionError("it is not over")


# ------------------------------------------------------------------------------------------------------- our own fixes


@pytest.mark.slow
def test_longhorns_wait_is_never_lowered() -> None:
    assert setting(provisioned(more=[longhorn("3600")])) == "3600"
    assert setting(provisioned(more=[longhorn("600")])) == "1800"


@pytest.mark.slow
def test_a_plan_that_fails_early_touches_no_kubevirt() -> None:
    found = world("n1", more=[facts({"n1": 140})])
    before = found.get("kubevirt.io/v1", "KubeVirt", "kubevirt", "harvester-system")
    found.rounds()
    assert found.phase == FAILED
    assert found.get("kubevirt.io/v1", "KubeVirt", "kubevirt", "harvester-system") == before
    assert not [w for w in found.scene.client.log.writes if w.kind in ("KubeVirt", "ManagedChart", "Setting")]


def test_a_conflict_behind_the_record_keeps_the_first_original() -> None:
    found = upgrading("n1", "n2", states={})
    found.set_status(currentPhase="ClusterUpgraded")
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.CONFLICT, verb="patch", kind="Setting", count=2))
    for _ in range(4):
        found.round()
        found.restart()
    assert setting(found) == "1800"
    (loan,) = [item for item in found.status["borrowed"] if item["kind"] == "Setting"]
    assert loan["value"] == "600"


@pytest.mark.slow
def test_after_a_failed_node_the_hooks_stay_until_the_plan_is_deleted() -> None:
    found = provisioned()
    found.ask("n1", PRE, "x")
    found.rounds()
    found.end_job(PRE_JOB, failed=True)
    found.to_its_end()
    assert local(found)["rkeConfig"]["upgradeStrategy"] != STRATEGY
    assert found.plan["metadata"]["finalizers"] == [f"{PREFIX}upgradeplan-cleanup"]
    found.delete_plan()
    _abort(found)
    assert local(found)["rkeConfig"]["upgradeStrategy"] == STRATEGY


def test_a_pause_does_not_touch_what_runs() -> None:
    found = alone()
    (before,) = found.all("Job")
    found.patch(found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": ["n1"]}}})
    found.rounds()
    assert found.all("Job") == [before]
    assert found.state("n1") == "SingleNodeUpgrading"


@pytest.mark.slow
def test_of_two_plans_one_goes_on_and_the_other_after_it() -> None:
    """Made in the same second, so by name: `rival` goes before `up`."""
    found = world()
    found.create(plan("rival"))
    for _ in range(4):
        found.round()
        found.scene.reconciler.round("rival")
    rival = found.get("management.harvesterhci.io/v1beta1", "UpgradePlan", "rival")
    assert (found.phase, rival["status"]["currentPhase"]) == ("", "ISODownloading")
    moment = rival["metadata"]["creationTimestamp"]
    ended = {"type": "Progressing", "status": "False", "reason": "Failed", "message": "", "lastTransitionTime": moment}
    found.patch(rival, {"status": {"currentPhase": "Failed", "conditions": [ended]}}, "status")
    found.until(lambda done: found.phase == "ISODownloading")
    assert found.condition("Available")["status"] == "True"


@pytest.mark.slow
def test_a_failing_image_cleanup_is_a_warning() -> None:
    recorded = recording("single-node", fail=("image-cleanup",))
    assert recorded.result.succeeded
    told = [event for _, done in recorded if done.decision for event in done.decision.events if event.type == "Warning"]
    assert [event.reason for event in told] == ["StepWarning"]
    assert "image-cleanup plan job(s) failed" in told[0].message


def test_an_unreachable_kubelet_is_asked_again() -> None:
    found = world("n1")
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.FAILED, verb="read", kind="Node", count=100))
    done = found.rounds()
    assert found.phase == "Initialized"
    assert done.decision
    assert done.decision.waits[0].unknown
    assert done.recheck
    found.scene.client.faults.clear()
    found.rounds()
    assert found.phase == "ISODownloading"


@pytest.mark.slow
def test_the_same_os_needs_a_new_boot() -> None:
    """Ours differs: an OS string that is equal already is no proof, and not answered at
    once."""
    found = upgrading("n1", "n2", states={"n2": "PostDrained"}, more=[node("n1", os=NEW_OS)])
    found.set_status(provisionGeneration=5)
    found.ask("n1", PRE, "a")
    found.rounds()
    found.end_job(PRE_JOB)
    found.rounds()
    found.ask("n1", POST, "b")
    found.rounds()
    found.end_job(POST_JOB)
    found.rounds()
    assert (found.state("n1"), found.annotation("n1", POST_HOOK)) == ("WaitingReboot", None)
    found.reboot("n1")
    found.rounds()
    assert (found.state("n1"), found.annotation("n1", POST_HOOK)) == ("PostDrained", "b")


@pytest.mark.slow
def test_a_round_that_finds_nothing_new_writes_nothing() -> None:
    found = provisioned()
    found.ask("n1", PRE, "a")
    found.rounds()
    writes, before = len(found.scene.client.log.writes), found.plan
    for _ in range(5):
        found.scene.clock.advance(60)
        found.round()
    assert len(found.scene.client.log.writes) == writes
    assert found.plan == before


@pytest.mark.slow
@pytest.mark.parametrize("reached", [provisioned, drained, rebooting])
def test_a_node_that_leaves_is_not_waited_for_and_leaves_nothing(reached: Callable[[], Small]) -> None:
    """Before its turn, drained, and while it reboots. Its Jobs go at the end like those of the others."""
    found = reached()
    others = ManualActors(found, succeeded={PRE_JOB, POST_JOB})
    others.node_leaves("n1", "Node")
    others.the_rest_goes()
    for _ in range(20):
        others.do_their_part()
        found.rounds()
    assert (found.phase, found.state("n2")) == (SUCCEEDED, "ImageCleaned")
    assert found.jobs() == []


@pytest.mark.slow
def test_a_node_whose_job_was_last_seen_running_is_done_once_its_plan_is() -> None:
    """Jobs and Plans come by two watches: the Plan's end may be seen before that of its last Job."""
    found = upgrading("n1", "n2", states={"n1": "PostDrained", "n2": "PostDrained"})
    found.set_status(currentPhase="CleaningUp")
    ManualActors(found)
    found.rounds()
    running = job("apply-up-image-cleanup-on-n1", "up", "")
    labels = {
        f"{PREFIX}upgrade-plan": "up",
        f"{PREFIX}upgrade-component": "image-cleanup",
        "upgrade.cattle.io/node": "n1",
    }
    found.create({**running, "metadata": {**running["metadata"], "namespace": "cattle-system", "labels": labels}})
    found.rounds()
    assert found.state("n1") == "ImageCleaning"
    found.end_plan("up-image-cleanup")
    found.rounds()
    assert (found.state("n1"), found.state("n2")) == ("ImageCleaned", "ImageCleaned")
