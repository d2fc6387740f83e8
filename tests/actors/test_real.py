"""The played world on a real control plane, where the controllers of Jobs, Deployments and garbage are real."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from controlplane import waiting
from controlplane.cluster import ControlPlane
from support.changes import Changes
from support.invariants import violations
from support.real_pods import RealPods

from actors.driving import SpedUpClock, driven
from actors.playing import AFTER, BEFORE, FLEET, PLANS, SYSTEM, Hand, condition, is_ready
from reconcile.cluster.client import connect
from reconcile.cluster.errors import Away, BackendFailed
from reconcile.cluster.kubeconfig import find_access
from reconcile.cluster.protocol import Cluster
from reconcile.simulator.actors.actor_client import CLAIM, CONFIG_MAP, IMAGE, JOB, NODE, POD, PROVISIONING_CLUSTER, VMI
from reconcile.simulator.actors.faults import FaultPlan
from reconcile.simulator.actors.settings import Settings
from reconcile.simulator.actors.simulation import Simulation
from reconcile.simulator.actors.simulation_log import SimulationEventType

SPEED = 600.0
FIRST = "charlie-1-tink-system"


def client_of(plane: ControlPlane) -> Cluster:
    access = find_access({}, kubeconfig=os.fspath(plane.kubeconfig))
    return connect(access, environ={}, now=lambda: datetime.now(UTC))


@dataclass(frozen=True, slots=True, kw_only=True)
class RealPlay:
    """An example on the real control plane while its world goes on by itself."""

    hand: Hand
    world: Simulation

    def until(self, what: str, look: Callable[[], Any]) -> Any:
        return waiting.until(what, look)

    def finish(self, step: str) -> tuple[Any, ...]:
        made = self.hand.apply(step)
        self.until(step, lambda: all(is_ready(self.hand.again(body)) for body in made))
        return tuple(self.hand.again(body) for body in made)


@pytest.fixture
def play(wiped_control_plane: ControlPlane) -> Iterator[RealPlay]:
    hand = Hand(client_of(wiped_control_plane), "three-node")
    settings = Settings.given(hand.release, hand.inputs.facts)
    changes = Changes(wiped_control_plane)
    world = Simulation.of(
        client_of(wiped_control_plane),
        hand.kinds,
        settings,
        faults=FaultPlan(),
        controllers=(),
        pods=RealPods(wiped_control_plane, client_of(wiped_control_plane)),
        version=changes.version,
    )
    with driven(world, SpedUpClock(SPEED), changes):
        yield RealPlay(hand=hand, world=world)


@pytest.mark.full("the repository on real controllers; a node from its first question to the last answer stands for it")
def test_from_the_image_to_the_repository(play: RealPlay) -> None:
    (image,) = play.finish("ISODownload/Image")
    (deployment,) = play.finish("RepoCreate/Deployment")
    assert deployment["status"]["availableReplicas"] == 2
    (service,) = play.finish("RepoCreate/Service")
    name = service["metadata"]["name"]
    content = play.until("release file", lambda: _read(play, name))
    assert b"v1.8.0-rc1" in content
    assert len(_repository_pods(play)) == 2
    play.hand.delete(deployment)
    play.hand.delete(image)
    play.until("pods gone", lambda: not _repository_pods(play))
    play.until("claim gone", lambda: not play.hand.all(CLAIM, SYSTEM))
    assert play.hand.all(IMAGE, SYSTEM) == ()


def _repository_pods(play: RealPlay) -> list[Any]:
    """Not those that the example has of its own."""
    return [pod for pod in play.hand.all(POD, SYSTEM) if "-repo-" in pod["metadata"]["name"]]


def _read(play: RealPlay, name: str) -> bytes | None:
    try:
        return play.world.repo.read(SYSTEM, name, "/harvester-iso/harvester-release.yaml")
    except BackendFailed:
        return None


def test_jobs_of_a_node_plan_are_real_jobs(play: RealPlay) -> None:
    (plan,) = play.finish("ImagePreload/Preload")
    assert condition(plan, "Complete") == "True Complete"
    jobs = play.hand.all(JOB, PLANS)
    assert [condition(job, "SuccessCriteriaMet") for job in jobs] == ["True CompletionsReached"] * len(jobs)
    play.hand.delete(plan)
    play.until("Jobs gone", lambda: not play.hand.all(JOB, PLANS))


def test_one_node_from_the_first_question_to_the_last_answer(play: RealPlay) -> None:
    hand = play.hand
    play.finish("ISODownload/Image")
    play.finish("RepoCreate/Deployment")
    play.until("seen", lambda: hand.get(PROVISIONING_CLUSTER, "local", FLEET)["status"]["observedGeneration"])
    for step in ("ClusterUpgrade/KeepWorkloadUpdates", "ClusterUpgrade/StopWorkloadUpdates"):
        hand.apply(step)
    play.finish("ClusterUpgrade/Manifests")
    hand.provision()
    play.until("question", lambda: hand.asking(BEFORE) == [FIRST])
    play.finish(f"NodeUpgrade/PreDrain/{FIRST}")
    assert hand.get(VMI, "web-1", "default")["status"]["nodeName"] != FIRST
    hand.answer(BEFORE, FIRST)
    play.until("second question", lambda: hand.asking(AFTER) == [FIRST])
    assert hand.get(NODE, FIRST)["spec"]["unschedulable"] is True
    boot = hand.boot_id(FIRST)
    play.finish(f"NodeUpgrade/PostDrain/{FIRST}")
    play.until("reboot", lambda: hand.boot_id(FIRST) != boot)
    hand.answer(AFTER, FIRST)
    play.until("uncordon", lambda: "unschedulable" not in hand.get(NODE, FIRST)["spec"])
    node = hand.get(NODE, FIRST)
    assert node["status"]["nodeInfo"]["kubeletVersion"] == "v1.35.2+rke2r1"
    assert node["status"]["nodeInfo"]["osImage"] == "Harvester v1.8.0-rc1"
    assert "taints" not in node["spec"]
    play.until("repository", lambda: _on_others(play))
    assert violations(play.world.log.events) == ()


def _on_others(play: RealPlay) -> bool:
    """The drained node's pod of the repository runs elsewhere."""
    pods = _repository_pods(play)
    return len(pods) == 2 and all(pod["spec"].get("nodeName") != FIRST for pod in pods)


def test_machines_are_stopped_and_started_without_kubevirts_api(play: RealPlay) -> None:
    node = "charlie-2-tink-system"
    play.finish(f"NodeUpgrade/PreDrain/{node}")
    assert play.hand.get(VMI, "ledger-1", "default") is None
    (restore,) = [each for each in play.hand.all(CONFIG_MAP, SYSTEM) if each["metadata"]["name"].endswith("restore-vm")]
    assert restore["data"] == {node: "default/ledger-1"}
    play.hand.patch(play.hand.get(NODE, node), {"spec": {"taints": None}})
    play.finish(f"NodeUpgrade/RestoreVM/{node}")
    play.until("started", lambda: play.world.log.of(SimulationEventType.VM_STARTED))
    assert [fact.subject for fact in play.world.log.of(SimulationEventType.VM_STARTED)] == ["default/ledger-1"]


@pytest.mark.full("an outage under the simulation; the one under a watch stands for it")
def test_an_outage_only_costs_time(play: RealPlay, wiped_control_plane: ControlPlane) -> None:
    play.hand.apply("ClusterUpgrade/Manifests")
    play.until("started", lambda: play.world.log.of(SimulationEventType.WORK_STARTED))
    with wiped_control_plane.outage():
        before = play.world.log.events
        with pytest.raises(Away):
            play.hand.all(JOB, SYSTEM)
        assert play.world.log.events == before
    play.until("done", lambda: play.world.log.of(SimulationEventType.WORK_SUCCEEDED))
    assert len(play.hand.all(JOB, SYSTEM)) == 1
