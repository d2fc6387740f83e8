"""The system-upgrade-controller: a Job a node, as many at once as the Plan allows, and what it says of them."""

from __future__ import annotations

from typing import Any

import pytest

from actors.playing import PLANS, Play, condition, fault
from reconcile.simulator.actors.actor_client import JOB, NODE, NODE_PLAN
from reconcile.simulator.actors.simulation_log import SimulationEventType
from renderer.names import safe_concat

pytestmark = pytest.mark.slow

STEP = "ImagePreload/Preload"
NODES = ["charlie-1-tink-system", "charlie-2-tink-system", "charlie-3-tink-system"]


def applied(play: Play) -> Any:
    (plan,) = play.apply(STEP)
    play.settle()
    return play.again(plan)


def active(play: Play) -> list[str]:
    """The nodes whose Job has a pod that runs or will."""
    return [
        job["metadata"]["labels"]["upgrade.cattle.io/node"]
        for job in play.all(JOB, PLANS)
        if (job.get("status") or {}).get("active")
    ]


def test_a_job_says_in_name_and_labels_what_it_is_for() -> None:
    play = Play()
    plan = applied(play)
    name, hash_ = plan["metadata"]["name"], plan["status"]["latestHash"]
    job = play.all(JOB, PLANS)[0]
    assert job["metadata"]["name"] == safe_concat("apply", name, "on", NODES[0], "with", hash_)
    assert job["metadata"]["labels"] == {
        "management.harvesterhci.io/upgrade-plan": "hvst-upgrade-864fh",
        "management.harvesterhci.io/upgrade-component": "image-preload",
        "upgrade.cattle.io/controller": "system-upgrade-controller",
        "upgrade.cattle.io/exclusive": "false",
        "upgrade.cattle.io/node": NODES[0],
        "upgrade.cattle.io/plan": name,
        "upgrade.cattle.io/version": "main-head",
        f"plan.upgrade.cattle.io/{name}": hash_,
    }
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "rancher/harvester-upgrade-toolkit:main-head"
    assert "activeDeadlineSeconds" not in job["spec"]


def test_labels_for_rancher_are_not_handed_on() -> None:
    play = Play()
    (manifest,) = play.rendered.manifests(STEP)
    metadata = {**manifest.body["metadata"], "labels": {"cattle.io/x": "1", "upgrade.cattle.io/y": "2", "z": "3"}}
    play.create({**manifest.body, "metadata": metadata})
    play.settle()
    labels = play.all(JOB, PLANS)[0]["metadata"]["labels"]
    assert ("cattle.io/x" in labels, "upgrade.cattle.io/y" in labels, labels["z"]) == (False, False, "3")


def test_all_nodes_are_labelled_before_the_plan_is_complete() -> None:
    play = Play()
    plan = applied(play)
    assert condition(plan, "Complete") == "False SyncJob"
    assert plan["status"]["applying"] == NODES
    (plan,) = play.finish(STEP)
    label = f"plan.upgrade.cattle.io/{plan['metadata']['name']}"
    assert [node["metadata"]["labels"][label] for node in play.all(NODE)] == [plan["status"]["latestHash"]] * 3
    assert "applying" not in plan["status"]


def test_no_more_jobs_run_than_the_plan_allows() -> None:
    play = Play("paused-node")
    plan = applied(play)
    assert plan["spec"]["concurrency"] == 1
    seen = []
    while not condition(play.again(plan), "Complete").startswith("True"):
        seen.append(active(play))
        play.wait(seconds=300)
    assert max(map(len, seen)) == 1
    assert {node for nodes in seen for node in nodes} == {"echo-1", "echo-2", "echo-3"}


def test_a_plan_that_selects_no_node_is_complete_at_once() -> None:
    play = Play()
    (manifest,) = play.rendered.manifests(STEP)
    spec = {**manifest.body["spec"], "nodeSelector": {"matchLabels": {"no": "node"}}}
    plan = play.create({**manifest.body, "spec": spec})
    play.settle()
    assert condition(play.again(plan), "Complete") == "True Complete"
    assert play.all(JOB, PLANS) == ()


def test_a_job_that_fails_is_reported_and_created_again_after_its_time_to_live() -> None:
    play = Play("three-node", fault("fail", "image-preload", NODES[1], times=3))
    plan = applied(play)
    assert play.run(until=lambda: condition(play.again(plan), "Complete") == "False JobFailed")
    message = next(c["message"] for c in play.again(plan)["status"]["conditions"] if c["type"] == "Complete")
    assert message.startswith("Job cattle-system/apply-hvst-upgrade-864fh-image-preload-on-charlie-2-tink-")
    assert message.endswith(
        f" failed on Node {NODES[1]}: BackoffLimitExceeded: Job has reached the specified backoff limit"
    )
    assert play.run(until=lambda: condition(play.again(plan), "Complete").startswith("True"))
    assert len(play.told(SimulationEventType.WORK_FAILED)) == 3
    assert play.told(SimulationEventType.WORK_SUCCEEDED).count(f"image-preload on {NODES[1]}") == 1


def test_job_failed_is_overwritten_when_the_job_of_another_node_ends() -> None:
    """The Failed Job stays as the only durable sign, until it is deleted: then JobFailed is written once more."""
    slow = fault("slow", "image-preload", NODES[0], minutes=40)
    play = Play("three-node", fault("fail", "image-preload", NODES[1]), slow)
    plan = applied(play)
    seen: list[str] = []

    def look() -> bool:
        said = condition(play.again(plan), "Complete")
        seen.extend([said] if seen[-1:] != [said] else [])
        return len(play.told(SimulationEventType.WORK_FAILED)) > 3

    assert play.run(until=look)
    assert seen == ["False SyncJob", "False JobFailed", "False SyncJob", "False JobFailed"]


def test_a_plan_that_changes_in_neither_version_nor_account_does_not_run_again() -> None:
    play = Play()
    (plan,) = play.finish(STEP)
    play.patch(plan, {"spec": {"upgrade": {"args": ["other"]}}})
    play.wait(hours=1)
    assert condition(play.again(plan), "Complete") == "True Complete"
    assert len(play.told(SimulationEventType.WORK_SUCCEEDED)) == 3


def test_a_node_without_a_hostname_or_with_the_label_disabled_is_not_selected() -> None:
    play = Play()
    name = play.rendered.manifests(STEP)[0].body["metadata"]["name"]
    play.patch(play.get(NODE, NODES[0]), {"metadata": {"labels": {"kubernetes.io/hostname": None}}})
    play.patch(play.get(NODE, NODES[1]), {"metadata": {"labels": {f"plan.upgrade.cattle.io/{name}": "disabled"}}})
    assert applied(play)["status"]["applying"] == [NODES[2]]


def test_a_job_that_runs_out_of_turn_is_deleted() -> None:
    play = Play("paused-node")
    plan = applied(play)
    (job,) = play.all(JOB, PLANS)
    node = next(each for each in ("echo-1", "echo-2", "echo-3") if each not in plan["status"]["applying"])
    labels = {**job["metadata"]["labels"], "upgrade.cattle.io/node": node}
    play.create({**job, "metadata": {"name": "x", "namespace": PLANS, "labels": labels}, "status": {}})
    play.settle()
    assert play.all(JOB, PLANS) == (play.again(job),)


def test_finished_jobs_go_after_a_quarter_of_an_hour() -> None:
    play = Play()
    play.finish(STEP)
    play.wait(seconds=899)
    assert len(play.all(JOB, PLANS)) == 3
    play.wait(seconds=1)
    assert play.all(JOB, PLANS) == ()


def test_jobs_go_with_their_plan() -> None:
    play = Play()
    plan = applied(play)
    play.delete(plan)
    play.settle()
    assert play.all(JOB, PLANS) == ()
    assert play.all(NODE_PLAN, PLANS) == ()


def test_a_changed_plan_runs_again_on_every_node() -> None:
    play = Play()
    (plan,) = play.finish(STEP)
    play.patch(plan, {"spec": {"version": "v9"}})
    play.settle()
    assert condition(play.again(plan), "Complete") == "False SyncJob"
    assert {job["metadata"]["labels"]["upgrade.cattle.io/version"] for job in play.all(JOB, PLANS)} == {"v9"}


def test_a_controller_that_misses_the_end_of_a_job_stands_still() -> None:
    play = Play("three-node", fault("stall", "system-upgrade-controller"))
    plan = applied(play)
    play.run()
    assert len(play.told(SimulationEventType.WORK_SUCCEEDED)) == 3
    assert condition(play.again(plan), "Complete") == "False SyncJob"
    assert play.again(plan)["status"]["applying"] == NODES


def test_a_late_controller_says_it_late() -> None:
    play = Play("three-node", fault("slow", "system-upgrade-controller", minutes=40))
    play.finish(STEP)
    assert (play.clock.now() - play.world.log.of(SimulationEventType.WORK_SUCCEEDED)[0].time).total_seconds() == 2400
