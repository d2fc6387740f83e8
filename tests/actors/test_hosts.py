"""Nodes that reboot: away and back, with another OS or the same, late or never."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actors.playing import Play, condition, fault
from reconcile.cluster.errors import BackendFailed
from reconcile.simulator.actors.actor_client import NODE
from reconcile.simulator.actors.simulation_log import SimulationEventType
from renderer.model.ref import Ref

NODE_1, NEW, OLD = "charlie-1-tink-system", "Harvester v1.8.0-rc1", "Harvester v1.7.1"
POST_DRAIN = f"NodeUpgrade/PostDrain/{NODE_1}"


def rebooting(*injected: Any, os_image: str = NEW) -> Play:
    play = Play("three-node", *injected)
    play.world.reboot(NODE_1, os_image)
    return play


def node(play: Play) -> Any:
    return play.get(NODE, NODE_1)


def os_of(play: Play) -> str:
    return str(node(play)["status"]["nodeInfo"]["osImage"])


@pytest.mark.slow
def test_a_node_is_up_for_a_moment_then_away_then_back_with_all_that_is_new() -> None:
    play = rebooting()
    boot = play.boot_id(NODE_1)
    play.wait(seconds=9)
    assert condition(node(play), "Ready").startswith("True")
    play.wait(seconds=1)
    assert condition(node(play), "Ready") == "Unknown NodeStatusUnknown"
    assert node(play)["spec"]["taints"] == [{"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}]
    assert (play.boot_id(NODE_1), os_of(play)) == (boot, OLD)
    play.wait(seconds=300)
    assert condition(node(play), "Ready").startswith("True")
    assert "taints" not in node(play)["spec"]
    assert play.boot_id(NODE_1) != boot
    assert os_of(play) == NEW
    assert play.outages == []


def test_a_cordon_outlives_the_reboot() -> None:
    play = rebooting()
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    play.patch(node(play), {"spec": {"unschedulable": True, "taints": [cordon]}})
    play.run()
    assert node(play)["spec"]["unschedulable"] is True
    assert node(play)["spec"]["taints"] == [cordon]


def test_with_the_same_os_only_the_boot_id_tells_of_it() -> None:
    play = rebooting(os_image=OLD)
    boot = play.boot_id(NODE_1)
    play.run()
    assert os_of(play) == OLD
    assert play.boot_id(NODE_1) != boot


@pytest.mark.slow
def test_a_node_whose_plug_was_pulled_comes_up_as_it_was() -> None:
    play = rebooting(os_image="")
    boot = play.boot_id(NODE_1)
    play.run()
    assert (os_of(play), play.boot_id(NODE_1) == boot) == (OLD, False)


def test_one_that_fails_comes_up_with_the_old_os() -> None:
    play = rebooting(fault("fail", "reboot", NODE_1))
    boot = play.boot_id(NODE_1)
    play.run()
    assert os_of(play) == OLD
    assert play.boot_id(NODE_1) != boot


def test_one_that_stalls_never_comes_back() -> None:
    play = rebooting(fault("stall", "reboot", NODE_1))
    play.run()
    assert condition(node(play), "Ready") == "Unknown NodeStatusUnknown"
    assert play.told(SimulationEventType.CAME_BACK) == []


def test_a_slow_one_comes_back_late() -> None:
    play = rebooting(fault("slow", "reboot", NODE_1, hours=2))
    play.run()
    down, back = play.world.log.of(SimulationEventType.WENT_DOWN, SimulationEventType.CAME_BACK)
    assert (back.time - down.time).total_seconds() == 7200


@pytest.mark.slow
def test_two_reboots_give_two_boot_ids() -> None:
    play = rebooting()
    ids = {play.boot_id(NODE_1)}
    for _ in range(2):
        play.run()
        ids.add(play.boot_id(NODE_1))
        play.world.reboot(NODE_1, NEW)
    assert len(ids) == 3


def test_the_job_after_the_drain_waits_for_kubernetes_and_ends_before_the_reboot() -> None:
    play = Play()
    play.apply(POST_DRAIN)
    play.run()
    assert play.told(SimulationEventType.WORK_STARTED) == [f"post-drain on {NODE_1}"]
    assert play.told(SimulationEventType.WORK_SUCCEEDED, SimulationEventType.WENT_DOWN) == []
    play.patch(node(play), {"status": {"nodeInfo": {"kubeletVersion": "v1.35.2+rke2r1"}}}, "status")
    play.run()
    assert [
        fact.what
        for fact in play.world.log.of(
            SimulationEventType.WORK_SUCCEEDED, SimulationEventType.WENT_DOWN, SimulationEventType.CAME_BACK
        )
    ] == [
        SimulationEventType.WORK_SUCCEEDED,
        SimulationEventType.WENT_DOWN,
        SimulationEventType.CAME_BACK,
    ]


def test_a_job_that_fails_reboots_nothing() -> None:
    play = Play("three-node", fault("fail", "post-drain"))
    play.apply(POST_DRAIN)
    play.run()
    assert play.told(SimulationEventType.WORK_FAILED) == [f"post-drain on {NODE_1}"] * 7
    assert play.told(SimulationEventType.WENT_DOWN) == []


def test_a_pod_whose_node_reboots_under_it_has_failed_and_is_repeated() -> None:
    play = Play()
    (job,) = play.apply(POST_DRAIN)
    assert play.run(until=lambda: play.told(SimulationEventType.WORK_STARTED))
    play.world.reboot(NODE_1, "")
    assert play.run(until=lambda: play.told(SimulationEventType.CAME_BACK))
    play.patch(node(play), {"status": {"nodeInfo": {"kubeletVersion": "v1.35.2+rke2r1"}}}, "status")
    assert play.run(until=lambda: condition(play.again(job), "Complete"))
    assert (play.again(job)["status"]["failed"], os_of(play)) == (1, OLD)
    play.run()
    assert os_of(play) == NEW


@pytest.mark.slow
def test_with_the_only_server_the_api_goes_away_as_well() -> None:
    play = Play("single-node")
    (step,) = (step for step in play.steps if "/SingleNode/" in step)
    play.finish(step)
    play.run()
    assert play.outages == [300.0]
    assert os_of_single(play) == play.release["os"]


def os_of_single(play: Play) -> str:
    return str(play.all(NODE)[0]["status"]["nodeInfo"]["osImage"])


def test_kubelets_answer_behind_the_proxy() -> None:
    play = Play()
    kind = play.kinds.row(*NODE).kind
    ref = Ref(api_version="v1", kind="Node", name=NODE_1)
    stats = json.loads(play.cluster.read(kind, ref, "proxy/stats/summary"))
    assert stats["node"]["fs"]["usedBytes"] == 68075229184
    assert json.loads(play.cluster.read(kind, ref, "proxy/configz"))["kubeletconfig"] == {
        "imageGCHighThresholdPercent": 85
    }
    with pytest.raises(BackendFailed):
        play.cluster.read(kind, ref, "proxy/pods")
