"""A Job that agents deliver runs its command once, whoever deletes it, through the real engines and the real kubectl.

Its phase is an overlay's: no packaged phase that agents deliver has a Job of its own beside its gate.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from agents.argo_driver import ArgoDriver, application_of, argo
from agents.engines import Engines
from agents.fleet_agent import READY, fleet
from agents.flux_controller import flux
from agents.rendered_tree import RenderedTree
from controlplane import waiting
from controlplane.cluster import ControlPlane
from support.real_upgrade import KINDS
from support.site_job import FOLDER, NAME, NAMESPACE, SitePod, overlay
from test_agents_real import exists

pytestmark = [
    pytest.mark.engines,
    pytest.mark.slow,
    pytest.mark.lane("engines"),
    pytest.mark.full("real agents deliver a Job; tests/test_delivery.py and tests/test_agents_health.py"),
]

JOB = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs/{NAME}"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
QUOTA = f"/api/v1/namespaces/{NAMESPACE}/resourcequotas"


@pytest.fixture
def tree(tmp_path: Path) -> RenderedTree:
    options = ("--deliver", "phases", "--templates", str(overlay(tmp_path / "own")))
    return RenderedTree(tmp_path / "tree", "single-node", *options)


@pytest.fixture
def pod(wiped_control_plane: ControlPlane, tmp_path: Path) -> SitePod:
    return SitePod(plane=wiped_control_plane, folder=tmp_path)


def uid(plane: ControlPlane) -> str:
    waiting.until("the Job", lambda: exists(plane, JOB))
    return str(plane.api.get(JOB)["metadata"]["uid"])


def end(pod: SitePod) -> None:
    """The Job's pod runs to its end, once it is there; the Job controller sees it."""
    uid(pod.plane)
    assert pod.run()[0] == 0
    path = f"{PODS}?labelSelector=job-name%3D{NAME}"
    found = waiting.until("the pod", lambda: pod.plane.api.get(path)["items"])
    for body in found:
        pod.plane.api.patch(f"{PODS}/{body['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})


def made_again(pod: SitePod, anew: Callable[[], object], is_done: Callable[[], bool]) -> None:
    """Somebody deletes the Job after it has succeeded, and the agent makes it again: its command is not run again, and
    the agent sees it succeed."""
    plane = pod.plane
    first = uid(plane)
    end(pod)
    waiting.until("the end", is_done)
    plane.api.delete(JOB)
    anew()
    waiting.until("another Job", lambda: exists(plane, JOB) and uid(plane) != first)
    end(pod)
    assert pod.times == 1
    waiting.until("the end again", is_done)


def test_flux_makes_a_job_again_and_it_does_no_harm(
    pod: SitePod, built_engines: Engines, tree: RenderedTree, tmp_path: Path
) -> None:
    with flux(pod.plane, built_engines, tree, tmp_path / "flux") as controller:
        controller.publish()
        names = controller.apply(FOLDER, dependsOn=[], interval="5s", retryInterval="5s", timeout="30s")
        controller.start()
        made_again(pod, lambda: None, lambda: controller.ready(names[0])[0] == "True")


def argo_application(tree: RenderedTree, **fields: object) -> dict[str, object]:
    bodies = tree.documents("agents/argocd/app-of-apps/phases/applications.yaml")
    return next(application_of(body, **fields) for body in bodies if body["spec"]["source"]["path"].endswith(FOLDER))


def is_healthy(driver: ArgoDriver, name: str) -> bool:
    return driver.last(name).get("health") == "Healthy"


def test_argo_makes_a_job_again_with_the_next_commit_and_it_does_no_harm(
    pod: SitePod, built_engines: Engines, tree: RenderedTree, tmp_path: Path
) -> None:
    with argo(pod.plane, built_engines, tree, KINDS, tmp_path / "argo") as driver:
        application = argo_application(tree)
        name = str(application["name"])
        driver.start(application)

        def commit() -> None:
            waiting.until("a loss that is seen", lambda: driver.last(name)["health"] == "Missing")
            tree.commit()

        made_again(pod, commit, partial(is_healthy, driver, name))


def test_fleet_makes_a_job_again_with_the_next_commit_and_it_does_no_harm(
    pod: SitePod, tree: RenderedTree, tmp_path: Path
) -> None:
    """A helm that is killed in the wait of this upgrade leaves `pending-upgrade`: Fleet rolls back and upgrades again,
    and the Job is the same all the while, by its mark."""
    with fleet(pod.plane, tree, tmp_path / "fleet") as agent:
        agent.start(FOLDER)

        def commit() -> None:
            waiting.until("Ready", lambda: agent.state(FOLDER) == READY)
            tree.commit(noted)
            waiting.until("a wait", lambda: exists(pod.plane, JOB) and agent.status(FOLDER) == "pending-upgrade")
            again = uid(pod.plane)
            agent.kill()
            assert agent.status(FOLDER) == "pending-upgrade"
            agent.start(FOLDER)
            waiting.until("a time-out", lambda: "deadline exceeded" in agent.state(FOLDER))
            assert [words[0] for words in agent.log].count("rollback") == 1
            assert uid(pod.plane) == again

        made_again(pod, commit, lambda: agent.state(FOLDER) == READY)


def noted(folder: Path) -> None:
    """Another content of the bundle: an agent that has delivered it looks again."""
    file = folder / "phases" / FOLDER / "run-once.yaml.txt"
    file.write_text(
        file.read_text(encoding="utf-8").replace("labels:", "labels:\n    noted: again", 1), encoding="utf-8"
    )


def is_refused(pod: SitePod) -> bool:
    """The API server knows the quota."""
    job = ("create", "job", "probe", "--image=a/b:c", "-n", NAMESPACE, "--dry-run=server")
    return "exceeded quota" in pod.plane.kubectl(*job, check=False).stderr


def test_argo_tries_again_what_a_quota_has_refused(
    pod: SitePod, built_engines: Engines, tree: RenderedTree, tmp_path: Path
) -> None:
    """With the same revision, after the backoff of its Application, which is shortened here."""
    plane = pod.plane
    none = {"hard": {"count/jobs.batch": "0"}}
    plane.api.create(QUOTA, {"metadata": {"name": "none"}, "spec": none})
    # As its controller does, which this control plane does not have: a quota without a status refuses nothing.
    plane.api.patch(f"{QUOTA}/none/status", {"status": {**none, "used": none["hard"]}})
    waiting.until("a quota that refuses", lambda: is_refused(pod))
    with argo(plane, built_engines, tree, KINDS, tmp_path / "argo") as driver:
        application = argo_application(tree)
        name = str(application["name"])
        driver.start({**application, "backoff": {"seconds": 1, "factor": 2, "maxSeconds": 60}})
        waiting.until("a refusal", lambda: driver.last(name).get("phase") == "Failed")
        assert "is forbidden" in driver.last(name)["message"]
        assert not exists(plane, JOB)
        plane.api.delete(f"{QUOTA}/none")
        end(pod)
        waiting.until("Healthy", lambda: is_healthy(driver, name))
        assert {report["revision"] for report in driver.reports(name)} == {"r1"}
        assert (pod.times, driver.last(name)["phase"]) == (1, "Succeeded")
