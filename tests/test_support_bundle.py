"""The support bundle that is offered before a repair: created only if somebody agrees, once for a plan."""

from __future__ import annotations

import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from controlplane import crds
from controlplane.cluster import ControlPlane
from support.real_commands import PLAN, SeededCluster

from reconcile.cli.support_bundle import KIND, bundle_of, offer_bundle
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from renderer.errors import Problems
from renderer.names import NAME_LIMIT

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "supportbundles.harvesterhci.io"},
    "spec": {
        "group": "harvesterhci.io",
        "scope": "Namespaced",
        "names": {
            "kind": KIND.kind,
            "listKind": "SupportBundleList",
            "plural": KIND.plural,
            "singular": "supportbundle",
        },
        "versions": [
            {
                "name": "v1beta1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "required": ["description"],
                                "properties": {"issueURL": {"type": "string"}, "description": {"type": "string"}},
                            }
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture
def cluster() -> Cluster:
    place = EmbeddedCluster(SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC)), definitions=[DEFINITION])
    place.seed([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "harvester-system"}}])
    return place.client()


def made(cluster: Cluster) -> list[Any]:
    return [body["spec"] for body in cluster.list(Selection(kind=KIND)).items]


@pytest.mark.parametrize(("typed", "bundles"), [("n\n", 0), ("\n", 0), ("y\n", 1)])
def test_it_is_created_only_if_somebody_agrees(
    cluster: Cluster, typed: str, bundles: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    offer_bundle(cluster, "up", "node n1 upgrade failed: no room", yes=False)
    assert len(made(cluster)) == bundles
    assert capsys.readouterr().out.count("SupportBundle harvester-system/bundle-up created; ") == bundles


def test_it_says_why_and_a_second_one_is_refused(cluster: Cluster) -> None:
    offer_bundle(cluster, "up", "node n1 upgrade failed: no room", yes=True)
    assert made(cluster) == [{"issueURL": "", "description": "UpgradePlan up: node n1 upgrade failed: no room"}]
    with pytest.raises(Problems) as refused:
        offer_bundle(cluster, "up", "", yes=True)
    assert refused.value.problems[0].message == "SupportBundle harvester-system/bundle-up already exists"


def test_a_long_name_of_a_plan_is_shortened() -> None:
    assert len(bundle_of("p" * 63, "")["metadata"]["name"]) <= NAME_LIMIT


# ------------------------------------------------------------------------------------------- on a real API server

BUNDLES = "/apis/harvesterhci.io/v1beta1/namespaces/harvester-system/supportbundles"


@pytest.mark.controlplane
@pytest.mark.lane("upgrades")
@pytest.mark.slow
def test_the_command_creates_it_on_a_real_api_server(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Once the cluster has the kind; until then it says so, and explains all the same."""
    site = SeededCluster(control_plane).site()
    site.stands(currentPhase="NodeUpgrading", nodeUpgradeStatuses={})
    without = site.run("explain", "--support-bundle", "--yes")
    assert (without.returncode, f"{PLAN}: NodeUpgrading" in without.stdout) == (3, True)
    assert "SupportBundle" in without.stderr
    (tmp_path / "supportbundles.yaml").write_text(json.dumps(DEFINITION), encoding="utf-8")
    crds.install(control_plane.api, tmp_path)
    try:
        made = site.run("explain", "--support-bundle", "--yes")
        (bundle,) = control_plane.api.get(BUNDLES)["items"]
        again = site.run("explain", "--support-bundle", "--yes")
    finally:
        control_plane.api.delete(f"{crds.PATH}/supportbundles.harvesterhci.io")
    assert made.returncode == 0
    assert f"SupportBundle harvester-system/bundle-{PLAN} created; " in made.stdout
    assert bundle["metadata"]["name"] == f"bundle-{PLAN}"
    assert bundle["spec"]["description"].startswith(f"UpgradePlan {PLAN}: ")
    assert (again.returncode, "already exists" in again.stderr) == (1, True)
