"""Deployments, Services and Jobs where Kubernetes' own controllers are played, and the pods of all of them."""

from __future__ import annotations

from typing import Any

import pytest
from support.invariants import violations

from actors.playing import SYSTEM, Play, condition, fault
from reconcile.simulator.actors.actor_client import DEPLOYMENT, ENDPOINT_SLICE, JOB, NODE, POD, REPLICA_SET
from reconcile.simulator.actors.simulation_log import SimulationEventType

pytestmark = pytest.mark.slow

PRE_DRAIN = "NodeUpgrade/PreDrain/charlie-1-tink-system"
RESTORE = "NodeUpgrade/RestoreVM/charlie-1-tink-system"
CLUSTER = "ClusterUpgrade/Manifests"


def with_repo(play: Play) -> Any:
    play.finish("ISODownload/Image")
    (deployment,) = play.finish("RepoCreate/Deployment")
    play.finish("RepoCreate/Service")
    play.settle()
    return deployment


def ready_endpoints(play: Play) -> list[bool]:
    (found,) = play.all(ENDPOINT_SLICE, SYSTEM)
    return [endpoint["conditions"]["ready"] for endpoint in found.get("endpoints") or ()]


def test_a_deployment_has_pods_on_different_nodes_and_says_so() -> None:
    play = Play()
    deployment = with_repo(play)
    pods = play.made(POD, SYSTEM)
    assert deployment["status"] | {"conditions": []} == {
        "observedGeneration": 1,
        "replicas": 2,
        "updatedReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "conditions": [],
    }
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == ["charlie-1-tink-system", "charlie-2-tink-system"]
    assert ready_endpoints(play) == [True, True]


def test_its_pods_wait_for_the_claim_that_they_mount() -> None:
    play = Play()
    (deployment,) = play.apply("RepoCreate/Deployment")
    play.run()
    assert [pod["status"]["phase"] for pod in play.made(POD, SYSTEM)] == ["Pending", "Pending"]
    assert condition(play.again(deployment), "Available") == "False MinimumReplicasUnavailable"


def test_a_pod_with_a_claim_waits_on_a_witness_where_longhorn_attaches_nothing() -> None:
    """The scheduler may place it there if it tolerates the taint: it does not know where Longhorn runs. That it does so
    before it takes the last node without one is the simulation's choice."""
    play = Play("two-node-witness")
    play.finish("ISODownload/Image")
    (manifest,) = play.rendered.manifests("RepoCreate/Deployment")
    spec: Any = dict(manifest.body["spec"])
    pod = {**spec["template"]["spec"], "affinity": {}, "tolerations": [{"operator": "Exists"}]}
    play.create({**manifest.body, "spec": {**spec, "replicas": 2, "template": {**spec["template"], "spec": pod}}})
    play.run()
    phases = {each["spec"]["nodeName"]: each["status"]["phase"] for each in play.made(POD, SYSTEM)}
    assert phases == {"bravo-1": "Running", "bravo-witness": "Pending"}


def test_the_repository_is_not_placed_on_a_witness() -> None:
    play = Play("two-node-witness")
    with_repo(play)
    for pod in play.made(POD, SYSTEM):
        play.patch(play.get(NODE, pod["spec"]["nodeName"]), {"spec": {"unschedulable": True}})
        play.delete(pod)
    play.run()
    assert [pod["spec"].get("nodeName") for pod in play.made(POD, SYSTEM)] == [None, None]


def test_a_changed_template_brings_new_pods_and_takes_the_old_ones() -> None:
    play = Play()
    deployment = with_repo(play)
    before = {pod["metadata"]["name"] for pod in play.made(POD, SYSTEM)}
    template = {"metadata": {"annotations": {"changed": "yes"}}}
    play.patch(deployment, {"spec": {"template": template}})
    play.run()
    after = {pod["metadata"]["name"] for pod in play.made(POD, SYSTEM)}
    assert len(after) == 2
    assert not after & before
    assert sorted(each["spec"]["replicas"] for each in play.all(REPLICA_SET, SYSTEM)) == [0, 2]
    assert play.again(deployment)["status"]["observedGeneration"] == 2


def test_all_goes_with_the_deployment() -> None:
    play = Play()
    play.delete(with_repo(play))
    play.settle()
    assert play.made(POD, SYSTEM) == ()
    assert ready_endpoints(play) == []


def test_pods_are_not_ready_while_their_node_is_away() -> None:
    play = Play()
    deployment = with_repo(play)
    play.world.reboot("charlie-1-tink-system", "Harvester v9")
    play.wait(seconds=60)
    assert sorted(ready_endpoints(play)) == [False, True]
    assert condition(play.again(deployment), "Available") == "False MinimumReplicasUnavailable"
    play.run()
    assert ready_endpoints(play) == [True, True]
    assert condition(play.again(deployment), "Available") == "True MinimumReplicasAvailable"


def test_a_deployment_of_the_users_cluster_is_left_alone() -> None:
    play = Play()
    labels = {"app": "theirs"}
    container = {"name": "c", "image": "i"}
    spec = {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    }
    metadata = {"name": "theirs", "namespace": SYSTEM}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    theirs = play.create(body)
    play.patch(theirs, {"status": {"observedGeneration": 1, "replicas": 1, "availableReplicas": 1}}, "status")
    play.run()
    assert play.made(POD, SYSTEM) == ()


def test_a_job_succeeds_as_the_real_controller_says_it() -> None:
    play = Play()
    (job,) = play.finish(CLUSTER)
    assert [(c["type"], c["status"], c["reason"]) for c in job["status"]["conditions"]] == [
        ("SuccessCriteriaMet", "True", "CompletionsReached"),
        ("Complete", "True", "CompletionsReached"),
    ]
    assert (job["status"]["succeeded"], job["status"].get("active")) == (1, None)
    assert job["status"]["completionTime"] == "2026-11-28T12:25:05Z"
    (pod,) = play.made(POD, SYSTEM)
    assert pod["status"]["phase"] == "Succeeded"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


@pytest.mark.parametrize(("step", "pods"), [(CLUSTER, 7), (RESTORE, 4)])
def test_a_job_fails_after_as_many_pods_as_it_allows(step: str, pods: int) -> None:
    play = Play("three-node", fault("fail", "cluster-upgrade"), fault("fail", "restore-vm"))
    (job,) = play.apply(step)
    play.run()
    job = play.again(job)
    assert condition(job, "Failed") == "True BackoffLimitExceeded"
    assert condition(job, "FailureTarget") == "True BackoffLimitExceeded"
    assert job["status"]["failed"] == pods == len(play.made(POD, SYSTEM))
    assert len(play.told(SimulationEventType.WORK_FAILED)) == pods


def test_a_job_that_may_try_again_gets_over_a_failure() -> None:
    play = Play("three-node", fault("fail", "restore-vm", "charlie-1-tink-system", times=2))
    (job,) = play.finish(RESTORE)
    assert (job["status"]["failed"], job["status"]["succeeded"]) == (2, 1)


def test_a_job_that_stalls_runs_for_ever() -> None:
    play = Play("three-node", fault("stall", "cluster-upgrade"))
    (job,) = play.apply(CLUSTER)
    play.run()
    assert play.again(job)["status"]["active"] == 1
    assert "conditions" not in play.again(job)["status"]


def test_a_slow_job_ends_late() -> None:
    play = Play("three-node", fault("slow", "cluster-upgrade", hours=3))
    play.finish(CLUSTER)
    assert (play.clock.now() - play.world.log.of(SimulationEventType.WORK_STARTED)[0].time).total_seconds() == 3 * 3600


def test_work_that_is_repeated_was_done_by_a_pod_that_failed_all_the_same() -> None:
    play = Play("three-node", fault("repeat", "cluster-upgrade"))
    (job,) = play.finish(CLUSTER)
    assert (job["status"]["failed"], job["status"]["succeeded"]) == (1, 1)
    assert play.told(SimulationEventType.KUBEVIRT_UPGRADED) == ["kubevirt"]


def test_a_suspended_job_has_no_pod_until_it_goes_on() -> None:
    play = Play()
    (manifest,) = play.rendered.manifests(CLUSTER)
    job = play.create({**manifest.body, "spec": {**manifest.body["spec"], "suspend": True}})
    play.run()
    assert play.made(POD, SYSTEM) == ()
    play.patch(job, {"spec": {"suspend": False}})
    assert play.run(until=lambda: condition(play.again(job), "Complete"))


def test_a_job_that_was_made_again_after_its_success_is_a_violation() -> None:
    play = Play()
    for step in ("ClusterUpgrade/KeepWorkloadUpdates", "ClusterUpgrade/StopWorkloadUpdates"):
        play.apply(step)
    (job,) = play.finish(CLUSTER)
    play.delete(job)
    play.settle()
    play.finish(CLUSTER)
    assert violations(play.facts) == (f"Job {job['metadata']['name']} ran again after it had succeeded",)


def test_a_node_that_is_cordoned_takes_no_new_pod() -> None:
    play = Play()
    for node in play.all(NODE)[:2]:
        play.patch(node, {"spec": {"unschedulable": True}})
    with_repo(play)
    assert {pod["spec"]["nodeName"] for pod in play.made(POD, SYSTEM)} == {"charlie-3-tink-system"}


def test_jobs_that_ran_before_the_world_began_are_left_alone() -> None:
    play = Play()
    (manifest,) = play.rendered.manifests(CLUSTER)
    job = play.create(manifest.body)
    play.patch(job, {"status": {"startTime": "2026-11-28T11:00:00Z", "active": 1}}, "status")
    play.run()
    assert play.made(POD, SYSTEM) == ()
    assert len(play.all(JOB, SYSTEM)) == 1
    assert play.made(DEPLOYMENT) == ()
