"""A manager of another release takes over in mid-plan, and the old one again: as processes, one after the other, on a
real API server. Nobody plays Harvester; the test ends what an upgrade has begun.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from controlplane.cluster import ControlPlane
from controlplane.waiting import PATIENCE, until
from support.installed import ACCOUNT, text_of
from support.real_commands import PLAN, CommandSite, SeededCluster
from support.rehearsals import ROOT

pytestmark = [
    pytest.mark.lane("upgrades"),
    pytest.mark.full(
        "two releases of the manager as processes; the same on the embedded cluster (test_another_manager.py) stays"
    ),
]

NAMESPACE = ACCOUNT[0]
NODE_PLANS = "/apis/upgrade.cattle.io/v1/namespaces/cattle-system/plans"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
PRELOAD, CLUSTER_JOB = f"{PLAN}-image-preload", f"{PLAN}-cluster-upgrade"
FIRST_OF_NODES = f"{PLAN}-skip-manifest-apply"
OF_CLUSTER, OF_NODES = "60-cluster-upgrade/job.yaml.j2", "70-node-upgrade/pre-drain-job.yaml.j2"
HELD = "has not begun, since the manager's templates differ from those that the plan began with: "
NO_CERTIFICATES = "management.harvesterhci.io/accept-risk=api-server-certificates"
"""This API server has no endpoint in a cluster that a check could connect to."""


@pytest.fixture
def site(control_plane: ControlPlane) -> CommandSite:
    """A plan of which the ISO image is imported and the metadata known; its images are not preloaded yet."""
    found = SeededCluster(control_plane).site()
    control_plane.kubectl("apply", "-f", "-", stdin=text_of("rbac"))
    control_plane.kubectl("annotate", "upgradeplan", PLAN, NO_CERTIFICATES)
    found.stands(currentPhase="ImagePreloading", version={"isoURL": "https://example.com/h.iso", "isoChecksum": ""})
    return found


@pytest.fixture
def other(tmp_path: Path) -> tuple[str, ...]:
    """The options of a manager of another release: of two files the text differs, and no object does."""
    for path in (OF_CLUSTER, OF_NODES):
        copy = tmp_path / "other" / path
        copy.parent.mkdir(parents=True)
        shutil.copy(ROOT / "templates" / path, copy)
        copy.write_text(f"{copy.read_text()}\n# another release of the program\n")
    return ("--templates", str(tmp_path / "other"))


@contextmanager
def manager(site: CommandSite, folder: Path, *words: str) -> Iterator[None]:
    """A process of the loop under its own account, which is asked to end at the end."""
    account = site.plane.service_account_kubeconfig(*ACCOUNT)
    own = ("--kubeconfig", str(account), "--namespace", NAMESPACE, "--health-address=", "--webhook-address=")
    command = [sys.executable, "-m", "renderer.cli", "run", *own, *words]
    log = folder / "manager.log"
    with log.open("w") as out, subprocess.Popen(command, stdout=out, stderr=out) as process:
        try:
            yield
        except TimeoutError as error:
            pytest.fail(f"{error}\n{site.plan().get('status')}\n{log.read_text()[-3000:]}")
        finally:
            process.terminate()
        assert process.wait(timeout=PATIENCE) == 0
    assert "Traceback" not in log.read_text()


def names(site: CommandSite, path: str) -> list[str]:
    return sorted(item["metadata"]["name"] for item in site.plane.api.get(path)["items"])


def end_preload(site: CommandSite) -> None:
    """As system-upgrade-controller says that every node is done."""
    said = {"type": "Complete", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}
    site.plane.api.patch(f"{NODE_PLANS}/{PRELOAD}/status", {"status": {"conditions": [said]}})


def end_cluster_job(site: CommandSite) -> None:
    """As its kubelet says that the pod has ended well; the Job's own controller does the rest."""

    def pods() -> list[Any]:
        return [pod for pod in site.plane.api.get(PODS)["items"] if CLUSTER_JOB in pod["metadata"]["name"]]

    (pod,) = until("the Job has a pod", pods)
    site.plane.api.patch(f"{PODS}/{pod['metadata']['name']}/status", {"status": {"phase": "Succeeded"}})


def held(site: CommandSite) -> str:
    """What the condition Degraded says of another manager's templates; empty if the plan is not held for them."""
    conditions = {item["type"]: item for item in site.plan()["status"].get("conditions", ())}
    degraded = conditions.get("Degraded", {})
    return str(degraded["message"]) if degraded.get("status") == "True" and HELD in degraded["message"] else ""


def phase(site: CommandSite) -> str:
    return str(site.plan()["status"]["currentPhase"])


def test_upgrade_and_rollback_of_the_manager_in_the_middle_of_a_plan(
    site: CommandSite, other: tuple[str, ...], tmp_path: Path
) -> None:
    with manager(site, tmp_path):
        until("the old manager preloads images", lambda: PRELOAD in names(site, NODE_PLANS))
    began = site.plan()["status"]["templates"]["digest"]
    preload = site.plane.api.get(f"{NODE_PLANS}/{PRELOAD}")["metadata"]["uid"]

    with manager(site, tmp_path, *other):
        end_preload(site)
        text = until("the new manager holds the plan", lambda: held(site))
        assert f"phase ClusterUpgrade {HELD}{OF_CLUSTER}; review what they change" in text
        assert (phase(site), names(site, JOBS)) == ("ImagePreloaded", [])
        for command in ("status", "explain"):
            shown = " ".join(site.run(command, PLAN).stdout.split())
            assert "phase ClusterUpgrade has not begun, since the manager's templates differ" in shown, shown
            assert "as the manager says" in shown, shown
        assert site.plan()["status"]["templates"]["digest"] == began

    with manager(site, tmp_path):  # a rollback
        until("the old manager goes on by itself", lambda: CLUSTER_JOB in names(site, JOBS))
        until("it says that nothing is wrong", lambda: not held(site))
    assert site.plane.api.get(f"{NODE_PLANS}/{PRELOAD}")["metadata"]["uid"] == preload

    with manager(site, tmp_path, *other):
        end_cluster_job(site)
        text = until("the new manager holds the plan before the nodes", lambda: held(site))
        assert f"phase NodeUpgrade {HELD}{OF_NODES}; review what they change" in text
        assert phase(site) == "ClusterUpgraded"
        packaged = site.run("approve", PLAN)
        assert packaged.returncode == 0, packaged.stderr
        assert held(site), "templates that this manager does not have were approved"
        approved = site.run("approve", PLAN, *other)
        assert approved.returncode == 0, approved.stderr
        until("the new manager goes on", lambda: FIRST_OF_NODES in names(site, NODE_PLANS))
        until("it says that nothing is wrong", lambda: not held(site))
        said = f"Continuing with the manager's templates, as approved: {OF_CLUSTER}, {OF_NODES}"
        until("an event says so", lambda: said in site.plane.kubectl("describe", "upgradeplan", PLAN).stdout)
    assert site.plan()["status"]["templates"]["digest"] != began
