"""Delivery trees through the real engines of Flux and Argo CD on the real API server.

Shape A: an agent delivers the UpgradePlan, and the loop upgrades. Harvester is played, quicker than life.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from agents.argo_driver import ArgoDriver, application_of, argo
from agents.engines import Engines
from agents.fleet_agent import READY, fleet
from agents.flux_controller import FluxController, flux
from agents.rendered_tree import RenderedTree
from controlplane import binaries, waiting
from controlplane.api import ApiError
from controlplane.audit import AuditEvent
from controlplane.cluster import ControlPlane
from support.real_upgrade import KINDS, RealUpgrade, process, world_of
from test_agents_health import OBJECTS
from test_agents_health import _values as values_of
from test_agents_health import argo as judge_as_argo

from reconcile.loop.round import Round
from renderer.delivery.health.argo_scripts import argo_health

pytestmark = [
    pytest.mark.engines,
    pytest.mark.slow,
    pytest.mark.lane("engines"),
    pytest.mark.full("real agents deliver a plan; tests/test_delivery.py and tests/test_agents_health.py"),
]

EXAMPLE = "single-node"
PLANS = "/apis/management.harvesterhci.io/v1beta1/upgradeplans"
JOBS = "/apis/batch/v1/jobs"


@pytest.fixture
def tree(tmp_path: Path) -> RenderedTree:
    return RenderedTree(tmp_path / "tree", EXAMPLE)


@dataclass
class Delivery:
    """A cluster in which nobody has created the plan yet, and the loop at work."""

    plane: ControlPlane
    place: RealUpgrade
    rounds: list[Round]

    def plan(self) -> Any:
        return self.place.plan()

    def phase(self) -> str:
        found = self.plan()
        return str((found or {}).get("status", {}).get("currentPhase", ""))

    def reaches(self, *phases: str) -> None:
        waiting.until(f"one of {phases}", lambda: self.phase() in phases)


@contextmanager
def loop_at_work(plane: ControlPlane, tree: RenderedTree) -> Iterator[Delivery]:
    with world_of(plane, EXAMPLE, tree.plan) as place:
        rounds: list[Round] = []
        manager = process(place, EXAMPLE, rounds.append, transport=place.transport())
        worker = Thread(target=manager.run, daemon=True)
        worker.start()
        try:
            yield Delivery(plane=plane, place=place, rounds=rounds)
        finally:
            manager.stop()
            worker.join(timeout=30)


class JobRuns:
    """Counts how often each Job was created, by whoever, however often somebody deleted it."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._mark = plane.audit_mark()

    def counts(self) -> Mapping[str, int]:
        """By URI, of those that were applied by name; the Jobs of nodes are named by their controller."""
        made = [event.uri.partition("?")[0] for event in self._plane.audit(self._mark) if _is_applied_job(event)]
        return Counter(made)

    def each_once(self) -> bool:
        return set(self.counts().values()) == {1}


def _is_applied_job(event: AuditEvent) -> bool:
    return event.verb == "patch" and event.code == 201 and "/jobs/" in event.uri


# --------------------------------------------------------------------------------------------------------------- Flux


def test_flux_delivers_a_plan_that_succeeds(
    wiped_control_plane: ControlPlane, built_engines: Engines, tree: RenderedTree, tmp_path: Path
) -> None:
    """With the controller killed in the middle and a new commit there; it is Ready when the plan has succeeded, and the
    plan outlives its Kustomization."""
    plane = wiped_control_plane
    runs = JobRuns(plane)
    with flux(plane, built_engines, tree, tmp_path / "flux") as controller, loop_at_work(plane, tree) as delivery:
        controller.publish()
        (name,) = controller.apply(interval="5s", retryInterval="5s", timeout="30s")
        controller.start()
        waiting.until("the plan", delivery.plan)
        uid = delivery.plan()["metadata"]["uid"]
        delivery.reaches("ImagePreloading", "ClusterUpgrading", "NodeUpgrading")
        assert controller.ready(name)[0] != "True"

        controller.kill()
        tree.commit(lambda folder: (folder / "SUMMARY.md").write_text("read again\n", encoding="utf-8"))
        revision = controller.publish()
        controller.start()
        delivery.reaches("Succeeded")
        waiting.until("Ready", lambda: controller.ready(name)[0] == "True")
        assert revision in controller.ready(name)[2]

        controller.delete(name)
        assert delivery.plan()["metadata"]["uid"] == uid
        assert runs.each_once(), runs.counts()


def test_flux_prunes_nothing_of_a_running_plan(
    wiped_control_plane: ControlPlane, built_engines: Engines, tree: RenderedTree, tmp_path: Path
) -> None:
    """Neither when the plan leaves its folder, nor when the folder leaves the tree, nor when the Kustomization goes."""
    plane = wiped_control_plane
    with flux(plane, built_engines, tree, tmp_path / "flux") as controller:
        controller.publish()
        (name,) = controller.apply(interval="5s", retryInterval="5s", timeout="30s", prune=True)
        controller.start()
        waiting.until("the plan", lambda: exists(plane, f"{PLANS}/{tree.plan}"))
        uid = plane.api.get(f"{PLANS}/{tree.plan}")["metadata"]["uid"]

        tree.commit(without_the_plan)
        revision = controller.publish()
        waiting.until("the new revision", lambda: revision in str(status_of(plane, name)))
        tree.commit(lambda folder: shutil.rmtree(folder / "plan"))
        controller.publish()
        waiting.until("a folder that is missed", lambda: controller.ready(name)[1] == "ArtifactFailed")
        controller.delete(name)
        assert plane.api.get(f"{PLANS}/{tree.plan}")["metadata"]["uid"] == uid


@pytest.mark.parametrize("folder", ["", "agents/flux", "agents/argocd", "review"])
def test_flux_at_another_folder_does_no_harm(
    folder: str, wiped_control_plane: ControlPlane, built_engines: Engines, tree: RenderedTree, tmp_path: Path
) -> None:
    """At most it delivers the plan itself: no Job, and no object of a phase."""
    plane = wiped_control_plane
    with flux(plane, built_engines, tree, tmp_path / "flux") as controller:
        controller.publish()
        (name,) = controller.apply(interval="5s", path=f"./{tree.plan}/{folder}", wait=False)
        controller.start()
        waiting.until("an answer", lambda: flux_has_answered(controller, name, plane, tree))
        assert_no_harm(plane, tree)


def flux_has_answered(controller: FluxController, name: str, plane: ControlPlane, tree: RenderedTree) -> bool:
    """It is Ready or not; or the folder with the agent's own objects has given the Kustomization of this name its own
    path, so that the plan is delivered and waited for from there on."""
    return controller.ready(name)[0] in ("True", "False") or exists(plane, f"{PLANS}/{tree.plan}")


def status_of(plane: ControlPlane, name: str) -> Any:
    found = plane.api.get(f"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/{name}")
    return found.get("status", {})


def without_the_plan(folder: Path) -> None:
    (folder / "plan" / "upgradeplan.yaml").unlink()
    text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [marker.yaml]\n"
    (folder / "plan" / "kustomization.yaml").write_text(text, encoding="utf-8")
    marker = "{apiVersion: v1, kind: ConfigMap, metadata: {name: marker, namespace: default}}\n"
    (folder / "plan" / "marker.yaml").write_text(marker, encoding="utf-8")


def exists(plane: ControlPlane, path: str) -> bool:
    try:
        plane.api.get(path)
    except ApiError as error:
        if error.code != 404:
            raise
        return False
    return True


def assert_no_harm(plane: ControlPlane, tree: RenderedTree) -> None:
    assert plane.api.get(JOBS)["items"] == []
    assert [plan["metadata"]["name"] for plan in plane.api.get(PLANS)["items"]] in ([], [tree.plan])
    assert plane.api.get("/apis/harvesterhci.io/v1beta1/virtualmachineimages")["items"] == []
    assert plane.api.get("/apis/upgrade.cattle.io/v1/plans")["items"] == []


# --------------------------------------------------------------------------------------------------------------- Argo


def test_argo_delivers_a_plan_that_succeeds(
    wiped_control_plane: ControlPlane, built_engines: Engines, tree: RenderedTree, tmp_path: Path
) -> None:
    """With the controller killed in the middle, a new commit there, and the plan's folder emptied at the end."""
    plane = wiped_control_plane
    runs = JobRuns(plane)
    with argo(plane, built_engines, tree, KINDS, tmp_path / "argo") as driver, loop_at_work(plane, tree) as delivery:
        application = application_of(*tree.documents("agents/argocd/applications.yaml"))
        name = application["name"]
        driver.start(application)
        waiting.until("the plan", delivery.plan)
        uid = delivery.plan()["metadata"]["uid"]
        delivery.reaches("ImagePreloading", "ClusterUpgrading", "NodeUpgrading")
        assert driver.last(name)["health"] == "Progressing"

        driver.kill()
        tree.commit(lambda folder: (folder / "SUMMARY.md").write_text("read again\n", encoding="utf-8"))
        driver.start(application)
        delivery.reaches("Succeeded")
        waiting.until("Healthy", lambda: driver.last(name)["health"] == "Healthy")
        assert driver.last(name)["synced"]

        driver.kill()
        revision = tree.commit(without_the_plan)
        driver.start({**application, "prune": True})
        waiting.until("a sync", lambda: finished(driver, name, revision))
        assert delivery.plan()["metadata"]["uid"] == uid
        assert runs.each_once(), runs.counts()


def finished(driver: ArgoDriver, name: str, revision: str) -> bool:
    last = driver.last(name)
    return last.get("revision") == revision and last.get("phase") == "Succeeded"


@pytest.mark.parametrize("folder", ["", "agents/flux", "agents/argocd", "review"])
def test_argo_at_another_folder_does_no_harm(
    folder: str, wiped_control_plane: ControlPlane, built_engines: Engines, tree: RenderedTree, tmp_path: Path
) -> None:
    plane = wiped_control_plane
    with argo(plane, built_engines, tree, KINDS, tmp_path / "argo") as driver:
        application = application_of(
            *tree.documents("agents/argocd/applications.yaml"), path=f"{tree.plan}/{folder}", retries=0
        )
        name = application["name"]
        driver.start(application)
        waiting.until("an answer", lambda: answered(driver, name))
        assert_no_harm(plane, tree)


def answered(driver: ArgoDriver, name: str) -> bool:
    """An operation has ended, there is nothing to sync, or the folder is refused."""
    last = driver.last(name)
    ended = last.get("phase") in ("Succeeded", "Failed", "Error")
    return ended or bool(last.get("synced")) or str(last.get("message", "")).startswith("ComparisonError")


# ------------------------------------------------------------------------------------------------------------ together


def test_two_agents_at_once_deliver_one_plan(
    wiped_control_plane: ControlPlane, built_engines: Engines, tree: RenderedTree, tmp_path: Path
) -> None:
    plane = wiped_control_plane
    runs = JobRuns(plane)
    with (
        flux(plane, built_engines, tree, tmp_path / "flux") as controller,
        argo(plane, built_engines, tree, KINDS, tmp_path / "argo") as driver,
        loop_at_work(plane, tree) as delivery,
    ):
        controller.publish()
        (name,) = controller.apply(interval="5s", retryInterval="5s", timeout="30s")
        application = application_of(*tree.documents("agents/argocd/applications.yaml"))
        controller.start()
        driver.start(application)
        waiting.until("the plan", delivery.plan)
        uid = delivery.plan()["metadata"]["uid"]
        delivery.reaches("Succeeded")
        waiting.until("both", lambda: controller.ready(name)[0] == "True" and is_healthy(driver, tree))
        assert delivery.plan()["metadata"]["uid"] == uid
        assert runs.each_once(), runs.counts()


def is_healthy(driver: ArgoDriver, tree: RenderedTree) -> bool:
    return bool(driver.last(tree.plan).get("health") == "Healthy")


# ------------------------------------------------------------------------------------------ Fleet's path: the real helm


def test_fleet_delivers_a_plan_that_succeeds(
    wiped_control_plane: ControlPlane, tree: RenderedTree, tmp_path: Path
) -> None:
    """With the agent killed in the middle and a new commit there. Its bundle is Ready from the start."""
    plane = wiped_control_plane
    runs = JobRuns(plane)
    with fleet(plane, tree, tmp_path / "fleet") as agent, loop_at_work(plane, tree) as delivery:
        agent.start()
        waiting.until("the plan", delivery.plan)
        uid = delivery.plan()["metadata"]["uid"]
        delivery.reaches("ImagePreloading", "ClusterUpgrading", "NodeUpgrading")

        agent.kill()
        tree.commit(noted)
        agent.start()
        delivery.reaches("Succeeded")
        waiting.until("Ready", lambda: agent.state("plan") == READY)
        assert [words[0] for words in agent.log] == ["install", "upgrade"]
        assert delivery.plan()["metadata"]["labels"]["noted"] == "again"
        assert delivery.plan()["metadata"]["uid"] == uid
        assert runs.each_once(), runs.counts()


def noted(folder: Path) -> None:
    """Another label of the plan, so that its bundle has another content."""
    file = folder / "plan" / "upgradeplan.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("metadata:\n", "metadata:\n  labels: {noted: again}\n", 1), encoding="utf-8")


def test_helm_installs_the_plan_as_fleet_does_and_an_uninstall_keeps_it(
    wiped_control_plane: ControlPlane, tree: RenderedTree, tmp_path: Path
) -> None:
    """Through kustomize, with the release name of fleet.yaml and helm's wait; a release whose install was interrupted,
    and one whose folder was removed, leave the plan as it is."""
    plane = wiped_control_plane
    (bundle,) = tree.documents("plan/fleet.yaml")
    release = bundle["helm"]["releaseName"]
    chart = chart_of(plane, tree, tmp_path / "chart")
    helm = partial(run_helm, plane, tmp_path)
    helm("install", release, str(chart), "-n", bundle["defaultNamespace"], "--wait=hookOnly")
    uid = plane.api.get(f"{PLANS}/{tree.plan}")["metadata"]["uid"]

    helm("upgrade", release, str(chart), "-n", bundle["defaultNamespace"], "--wait=hookOnly")
    helm("uninstall", release, "-n", bundle["defaultNamespace"])
    assert plane.api.get(f"{PLANS}/{tree.plan}")["metadata"]["uid"] == uid
    helm("install", release, str(chart), "-n", bundle["defaultNamespace"], "--wait=hookOnly")
    assert plane.api.get(f"{PLANS}/{tree.plan}")["metadata"]["uid"] == uid


@pytest.mark.parametrize(
    ("phase", "ready", "code"), [("NodeUpgrading", "False", 1), ("Succeeded", "True", 0), ("Failed", "False", 1)]
)
def test_helm_waits_for_a_plan_by_its_own_conditions(
    phase: str, ready: str, code: int, wiped_control_plane: ControlPlane, tree: RenderedTree, tmp_path: Path
) -> None:
    """Without a rule of ours: kstatus reads Ready, Reconciling and Stalled."""
    plane = wiped_control_plane
    chart = chart_of(plane, tree, tmp_path / "chart")
    plane.kubectl("apply", "-f", str(chart / "templates" / "all.yaml"))
    at = {"lastTransitionTime": "2026-11-02T08:00:00Z", "reason": phase, "message": ""}
    states = {"Ready": ready, "Reconciling": str(phase == "NodeUpgrading"), "Stalled": str(phase == "Failed")}
    conditions = [{"type": type_, "status": status, **at} for type_, status in states.items()]
    plane.api.patch(f"{PLANS}/{tree.plan}/status", {"status": {"currentPhase": phase, "conditions": conditions}})
    options = ("--take-ownership", "--wait", "--timeout", "2s")
    done = run_helm(plane, tmp_path, "install", "up", str(chart), "-n", "harvester-system", *options, check=False)
    assert done.returncode == code, done.stderr


def chart_of(plane: ControlPlane, tree: RenderedTree, folder: Path) -> Path:
    (folder / "templates").mkdir(parents=True)
    built = plane.kubectl("kustomize", str(tree.current / tree.plan / "plan")).stdout
    (folder / "templates" / "all.yaml").write_text(built, encoding="utf-8")
    (folder / "Chart.yaml").write_text("{apiVersion: v2, name: c, version: 0.1.0}\n", encoding="utf-8")
    return folder


def run_helm(plane: ControlPlane, home: Path, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.defpath, "HOME": str(home), "KUBECONFIG": str(plane.kubeconfig)}
    done = subprocess.run(
        [str(binaries.clients_dir() / "helm"), *words], env=environment, capture_output=True, text=True, check=False
    )
    assert not check or done.returncode == 0, done.stderr
    return done


# ------------------------------------------------------------------------------------------------------- health in Argo


def test_argos_own_interpreter_judges_as_the_tests_do(built_engines: Engines, tmp_path: Path) -> None:
    """All objects of `probes/` whose kinds have a script, by the interpreter that Argo CD has."""
    rules = tmp_path / "argocd-cm.json"
    rules.write_text(json.dumps({"data": dict(argo_health(KINDS))}), encoding="utf-8")
    given = [(rule, body) for _, body, rule in map(values_of, OBJECTS) if rule.is_custom and named(body)]
    lines = "".join(json.dumps(body) + "\n" for _, body in given)
    command = [str(built_engines.argo), "health", str(rules)]
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    told = [json.loads(line)["status"] for line in done.stdout.splitlines()]
    assert told == [judged_in_test(rule, body) for rule, body in given]
    assert {"Healthy", "Progressing", "Degraded"} == set(told)


def named(body: Any) -> bool:
    return isinstance(body.get("metadata", {}).get("name"), str)


def judged_in_test(rule: Any, body: Any) -> str:
    """The engine itself waits for an object that is being deleted, before it asks a script."""
    return "Progressing" if body["metadata"].get("deletionTimestamp") else str(judge_as_argo(rule, body)["status"])
