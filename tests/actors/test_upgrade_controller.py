"""The system-upgrade-controller: a Job a node, as many at once as the Plan allows, and what it says of them."""

from __future__ import annotations

from typing import Any

from actors.playing import PLANS, Play, condition, fault
from reconcile.simulator.actors.actor_client import JOB, NODE, NODE_PLAN
from reconcile.simulator.actors.simulation_log import SimulationEventType
from renderer.names import safe_concat

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
    assert condition(plan, "Complete") == "False InProgress"
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


def test_a_failure_is_said_and_tried_again_after_the_job_is_gone() -> None:
    play = Play("three-node", fault("fail", "image-preload", NODES[1], times=3))
    plan = applied(play)
    assert play.run(until=lambda: condition(play.again(plan), "Complete") == "False JobFailed")
    assert NODES[1] in next(c["message"] for c in play.again(plan)["status"]["conditions"] if c["type"] == "Complete")
    assert play.run(until=lambda: condition(play.again(plan), "Complete").startswith("True"))
    assert len(play.told(SimulationEventType.WORK_FAILED)) == 3
    assert play.told(SimulationEventType.WORK_SUCCEEDED).count(f"image-preload on {NODES[1]}") == 1


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
    assert condition(play.again(plan), "Complete") == "False InProgress"
    assert {job["metadata"]["labels"]["upgrade.cattle.io/version"] for job in play.all(JOB, PLANS)} == {"v9"}


def test_a_controller_that_misses_the_end_of_a_job_stands_still() -> None:
    play = Play("three-node", fault("stall", "system-upgrade-controller"))
    plan = applied(play)
    play.run()
    assert len(play.told(SimulationEventType.WORK_SUCCEEDED)) == 3
    assert condition(play.again(plan), "Complete") == "False InProgress"
    assert play.again(plan)["status"]["applying"] == NODES


def test_a_late_controller_says_it_late() -> None:
    play = Play("three-node", fault("slow", "system-upgrade-controller", minutes=40))
    play.finish(STEP)
    assert (play.clock.now() - play.world.log.of(SimulationEventType.WORK_SUCCEEDED)[0].time).total_seconds() == 2400
