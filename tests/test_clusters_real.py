"""Waves over clusters with Flux's real controller on the real API server, which stands for each of the clusters."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml
from agents.engines import Engines
from agents.flux_controller import GROUP, FluxController, flux
from agents.rendered_tree import RenderedClusters
from controlplane.api import ApiError
from controlplane.cluster import ControlPlane
from controlplane.waiting import until
from test_agents_real import PLANS

pytestmark = [
    pytest.mark.engines,
    pytest.mark.slow,
    pytest.mark.lane("upgrades"),
    pytest.mark.full("a real agent carries waves out; tests/test_clusters.py"),
]

WAVES: list[dict[str, Any]] = [
    {"name": "first", "clusters": ["lab"]},
    {"name": "second", "clusters": ["north"]},
    {"name": "third", "rest": True, "pause": "manual"},
]


def test_a_wave_begins_once_the_one_before_has_succeeded_and_is_released(
    wiped_control_plane: ControlPlane, built_engines: Engines, tmp_path: Path
) -> None:
    plane, tree = wiped_control_plane, RenderedClusters(tmp_path / "tree", WAVES)
    with flux(plane, built_engines, tree, tmp_path / "flux") as controller:
        give_access(plane, "lab", "north", "south")
        controller.publish()
        controller.apply(interval="5s", retryInterval="3s", timeout="30s")
        controller.start()

        until("lab has its plan", lambda: plan(plane, "lab"))
        is_held(controller, "before-second", "cluster-north", "cluster-south")
        come_to(plane, "lab", "NodeUpgrading")
        until("a running plan is waited for", lambda: reason(controller, "cluster-lab") == "HealthCheckFailed")
        is_held(controller, "before-second", "cluster-north")
        come_to(plane, "lab", "Failed")
        until("a failed plan is reported", lambda: "failed" in controller.ready("v1-8-0-cluster-lab")[2].lower())
        assert plan(plane, "north") is None
        come_to(plane, "lab", "Succeeded")
        until("north has its plan", lambda: plan(plane, "north"))

        come_to(plane, "north", "Succeeded")
        until("north is done", lambda: controller.ready("v1-8-0-cluster-north")[0] == "True")
        is_held(controller, "cluster-south")
        assert plan(plane, "south") is None
        assert controller.ready("v1-8-0-before-third") == ("", "", "")
        plane.api.patch(f"{GROUP}/v1-8-0-before-third", {"spec": {"suspend": False}})
        until("south has its plan", lambda: plan(plane, "south"))


def give_access(plane: ControlPlane, *clusters: str) -> None:
    """A Secret with a kubeconfig for each cluster, as Flux expects it: with all that it needs in it."""
    config = yaml.safe_load(plane.kubeconfig.read_text())
    for entry in (*(item["cluster"] for item in config["clusters"]), *(item["user"] for item in config["users"])):
        for name in ("certificate-authority", "client-certificate", "client-key"):
            if name in entry:
                entry[f"{name}-data"] = base64.b64encode(Path(entry.pop(name)).read_bytes()).decode()
    for cluster in clusters:
        metadata = {"name": f"{cluster}-kubeconfig", "namespace": "flux-system"}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"value": yaml.dump(config)}}
        plane.api.create_if_absent("/api/v1/namespaces/flux-system/secrets", body)


def plan(plane: ControlPlane, cluster: str) -> Any:
    """The plan of a cluster; None where nobody has delivered it."""
    try:
        return plane.api.get(f"{PLANS}/v1-8-0-{cluster}")
    except ApiError as error:
        if error.code != 404:
            raise
        return None


def come_to(plane: ControlPlane, cluster: str, phase: str) -> None:
    plane.api.patch(f"{PLANS}/v1-8-0-{cluster}/status", {"status": {"currentPhase": phase}})


def reason(controller: FluxController, name: str) -> str:
    return controller.ready(f"v1-8-0-{name}")[1]


def is_held(controller: FluxController, *names: str) -> None:
    for name in names:
        until(f"{name} is held", lambda name=name: reason(controller, name) == "DependencyNotReady")  # type: ignore[misc]
