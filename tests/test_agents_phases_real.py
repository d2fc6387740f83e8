"""Phases that an agent delivers one after the other, through the real engines on the real API server.

The gates' Jobs run our own command, under the account and the roles that were rendered beside them; the test plays
kubelet and system-upgrade-controller.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from agents.argo_driver import ArgoDriver, application_of, argo
from agents.engines import Engines
from agents.fleet_agent import HELD, READY, fleet
from agents.flux_controller import flux
from agents.rendered_tree import RenderedTree
from controlplane import waiting
from controlplane.cluster import ControlPlane
from support.real_upgrade import KINDS
from test_agents_real import exists

from renderer.cli.program import run

pytestmark = [
    pytest.mark.engines,
    pytest.mark.slow,
    pytest.mark.lane("engines"),
    pytest.mark.full(
        "real agents deliver phases; tests/test_delivery.py, tests/test_gate.py, tests/test_agents_health.py"
    ),
]

JOBS = "/apis/batch/v1/namespaces/harvester-system/jobs"
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/harvester-system/pods"
MAPS = "/api/v1/namespaces/harvester-system/configmaps"
SUC_PLANS = "/apis/upgrade.cattle.io/v1/namespaces/cattle-system/plans"
DEPLOYMENTS = "/apis/apps/v1/namespaces/harvester-system/deployments"


@pytest.fixture
def tree(tmp_path: Path) -> RenderedTree:
    return RenderedTree(tmp_path / "tree", "single-node", "--deliver", "phases", "--phase", "ImageCleanup")


class Cluster:
    """What a test does as kubelet and as the system-upgrade-controller."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.api = plane.api
        self._plane = plane
        self._folder = folder

    def gate(self, phase: str) -> str:
        """The name of the phase's gate Job, once it is there."""
        return str(waiting.until(f"the gate of {phase}", lambda: self._gate(phase)))

    def _gate(self, phase: str) -> str:
        jobs = self.api.get(JOBS)["items"]
        return next(
            (job["metadata"]["name"] for job in jobs if f"gate-{phase.lower()}-" in job["metadata"]["name"]), ""
        )

    def uids(self) -> Mapping[str, str]:
        """Of all Jobs by name."""
        return {job["metadata"]["name"]: job["metadata"]["uid"] for job in self.api.get(JOBS)["items"]}

    def gates(self) -> int:
        return len(self.api.get(JOBS)["items"])

    def run_gate(self, phase: str, name: str) -> int:
        """Our command as the Job's pod runs it: its account, its ConfigMap."""
        file = self._folder / f"{phase}.yaml"
        file.write_text(self.api.get(f"{MAPS}/{name}")["data"]["gate.yaml"], encoding="utf-8")
        account = self._plane.service_account_kubeconfig("harvester-system", name)
        return run(["upgradeplan", "gate", phase, "--from", str(file), "--kubeconfig", str(account), "--timeout", "0s"])

    def end_pod(self, job: str, phase: str = "Succeeded") -> None:
        pod = waiting.until(f"the pod of {job}", lambda: self._pod(f"job-name%3D{job}"))
        self.api.patch(f"{PODS}/{pod}/status", {"status": {"phase": phase}})

    def make_pods_ready(self) -> None:
        """Those of the Deployment."""
        ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        pod = waiting.until("the repository's pod", lambda: self._pod("%21job-name"))
        self.api.patch(f"{PODS}/{pod}/status", {"status": ready})

    def _pod(self, selector: str) -> str:
        found = self.api.get(f"{PODS}?labelSelector={selector}")["items"]
        return str(found[0]["metadata"]["name"]) if found else ""

    def complete_plans(self) -> None:
        condition = {"type": "Complete", "status": "True", "lastUpdateTime": "2026-11-02T08:00:00Z"}
        for plan in self.api.get(SUC_PLANS)["items"]:
            path = f"{SUC_PLANS}/{plan['metadata']['name']}/status"
            self.api.patch(path, {"status": {"conditions": [condition]}})

    def has_node(self, os: str, kubelet: str) -> None:
        """A node that is Ready, with these versions."""
        self.api.create_if_absent(NODES, {"metadata": {"name": "n1", "labels": {"harvesterhci.io/managed": "true"}}})
        ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-02T08:00:00Z"}
        info = {"osImage": os, "kubeletVersion": kubelet}
        self.api.patch(f"{NODES}/n1/status", {"status": {"conditions": [ready], "nodeInfo": info}})


def play(cluster: Cluster, restart: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    """Each phase is there only when the one before has passed; the agent is killed while a gate is under way."""
    first = cluster.gate("Initialize")
    assert cluster.gates() == 1
    restart()
    cluster.end_pod(first)

    second = cluster.gate("ISODownload")
    assert cluster.api.get(DEPLOYMENTS)["items"] == []
    cluster.end_pod(second)

    third = cluster.gate("RepoCreate")
    cluster.end_pod(third)
    assert cluster.api.get(SUC_PLANS)["items"] == []  # the Deployment is not available yet
    cluster.make_pods_ready()

    last = cluster.gate("ImagePreload")
    assert cluster.gates() == 4
    capsys.readouterr()
    assert cluster.run_gate("ImagePreload", last) == 1
    said = capsys.readouterr().out
    assert "waiting: ImagePreload/" in said
    assert "condition Complete is absent, expected True" in said
    cluster.complete_plans()
    assert cluster.run_gate("ImagePreload", last) == 0
    cluster.end_pod(last)


def play_cleanup(cluster: Cluster, is_held: Callable[[], bool], capsys: pytest.CaptureFixture[str]) -> None:
    """Of the cleanup nothing is made while a node is old; what waits for it says so. Then it goes through."""
    cluster.has_node("Harvester v1.7.1", "v1.34.1+rke2r1")
    gate = cluster.gate("BeforeImageCleanup")
    capsys.readouterr()
    assert cluster.run_gate("BeforeImageCleanup", gate) == 1
    assert "waiting: ImageCleanup/Before: 0 of 1 nodes pass" in capsys.readouterr().out
    waiting.until("the cleanup is held", is_held)
    assert len(cluster.api.get(SUC_PLANS)["items"]) == 1

    cluster.has_node("Harvester v1.8.0-rc5", "v1.35.2+rke2r1")
    assert cluster.run_gate("BeforeImageCleanup", gate) == 0
    cluster.end_pod(gate)
    last = cluster.gate("ImageCleanup")
    waiting.until("the plan of the cleanup", lambda: len(cluster.api.get(SUC_PLANS)["items"]) == 2)
    cluster.complete_plans()
    assert cluster.run_gate("ImageCleanup", last) == 0
    cluster.end_pod(last)


def test_flux_takes_phase_after_phase(
    wiped_control_plane: ControlPlane,
    built_engines: Engines,
    tree: RenderedTree,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    plane = wiped_control_plane
    cluster = Cluster(plane, tmp_path)
    with flux(plane, built_engines, tree, tmp_path / "flux") as controller:
        controller.publish()
        names = controller.apply(interval="5s", retryInterval="5s", timeout="30s")

        def restart() -> None:
            """Killed in the wait, then out of time: the Job is the same, and is waited for again."""
            uids = cluster.uids()
            controller.kill()
            controller.start()
            waiting.until("a time-out", lambda: controller.ready(names[0])[1] == "HealthCheckFailed")
            assert cluster.uids() == uids

        controller.start()
        play(cluster, restart, capsys)
        play_cleanup(cluster, lambda: controller.ready(names[-1])[1] == "DependencyNotReady", capsys)
        waiting.until("all", lambda: all(controller.ready(name)[0] == "True" for name in names))

        uids = cluster.uids()
        for name in names:  # nothing is pruned with its Kustomization
            controller.delete(name)
        assert cluster.uids() == uids
        assert len(plane.api.get(SUC_PLANS)["items"]) == 2


def test_argo_takes_phase_after_phase(
    wiped_control_plane: ControlPlane,
    built_engines: Engines,
    tree: RenderedTree,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A Job that vanished is not made again, since nothing heals automatically; a sync makes it again, and its command
    only looks."""
    plane = wiped_control_plane
    cluster = Cluster(plane, tmp_path)
    bodies = tree.documents("agents/argocd/app-of-apps/phases/applications.yaml")
    applications: list[dict[str, Any]] = []
    for body in bodies:
        applications.append(application_of(body, after=[item["name"] for item in applications[-1:]]))
    with argo(plane, built_engines, tree, KINDS, tmp_path / "argo") as driver:

        def restart() -> None:
            driver.kill()
            driver.start(*applications)

        driver.start(*applications)
        play(cluster, restart, capsys)
        last = applications[-1]["name"]
        play_cleanup(cluster, lambda: has_not_begun(driver, last), capsys)
        waiting.until("all", lambda: driver.last(last).get("health") == "Healthy")

        name = cluster.gate("ISODownload")
        plane.api.delete(f"{JOBS}/{name}")
        gone = applications[1]["name"]
        waiting.until("a loss that is seen", lambda: driver.last(gone)["health"] == "Missing")
        assert not exists(plane, f"{JOBS}/{name}")
        tree.commit()
        assert cluster.gate("ISODownload") == name
        assert cluster.run_gate("ISODownload", name) in (0, 1)


def has_not_begun(driver: ArgoDriver, name: str) -> bool:
    """It was looked at, and no operation of it has begun."""
    report = driver.last(name)
    return report.get("health") == "Missing" and not report["phase"]


def test_fleet_takes_phase_after_phase(
    wiped_control_plane: ControlPlane, tree: RenderedTree, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the real helm. One that is killed in the wait of an install leaves `pending-install`: Fleet uninstalls that
    and installs it anew, and what runs is kept by its mark."""
    cluster = Cluster(wiped_control_plane, tmp_path)
    with fleet(wiped_control_plane, tree, tmp_path / "fleet") as agent:

        def restart() -> None:
            uids = cluster.uids()
            waiting.until("a wait", lambda: agent.status("10-initialize") == "pending-install")
            agent.kill()
            assert agent.status("10-initialize") == "pending-install"
            agent.start()
            waiting.until("a time-out", lambda: "deadline exceeded" in agent.state("10-initialize"))
            assert ("uninstall", f"{tree.plan}-10-initialize", "-n") in agent.log
            assert cluster.uids() == uids

        agent.start()
        play(cluster, restart, capsys)
        play_cleanup(cluster, lambda: agent.state("80-image-cleanup") == HELD, capsys)
        waiting.until("all", lambda: agent.state("80-image-cleanup") == READY)
