"""Every object that agents are given, on the real API server with the definitions of Fleet, Argo CD and Flux: each is
accepted under strict validation of fields."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from agents import argo_definitions, fleet_definitions
from agents.engines import Engines
from controlplane import crds
from controlplane.cluster import ControlPlane
from support.rehearsals import ROOT

from renderer.cli.program import run

pytestmark = [
    pytest.mark.engines,
    pytest.mark.slow,
    pytest.mark.lane("engines"),
    pytest.mark.full("fetches the definitions of agents; tests/test_delivery.py pins what they are given"),
]
AGENTS = [word for agent in ("flux", "argocd", "fleet") for word in ("--format", agent)]
REPOSITORY = ("--repo", "https://git.example.com/site.git")
NAMESPACES = ("argocd", "flux-system", "fleet-local", "fleet-default")


@pytest.fixture(scope="module")
def plane(
    clean_control_plane: ControlPlane, built_engines: Engines, tmp_path_factory: pytest.TempPathFactory
) -> ControlPlane:
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "all.yaml").write_text(yaml.safe_dump_all(fleet_definitions.DEFINITIONS))
    sources = Path(fleet_definitions.__file__).parent / "definitions"
    for definitions in (folder, sources, built_engines.definitions, argo_definitions.fetched(lambda _: None)):
        crds.install(clean_control_plane.api, definitions)
    for namespace in NAMESPACES:
        clean_control_plane.create_namespace(namespace)
    return clean_control_plane


def objects_of(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """What is applied for agents, and what they read as fleet.yaml."""
    for path in sorted(folder.rglob("*.yaml")):
        place = path.relative_to(folder)
        bodies = [body for body in yaml.safe_load_all(path.read_text()) if body]
        if path.name == "fleet.yaml":
            api_version, kind = fleet_definitions.FILE
            metadata = {"name": "fleet", "namespace": "fleet-local"}
            (body,) = bodies
            yield str(place), {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": body}
        elif "agents" in place.parts:
            yield from ((str(place), body) for body in bodies)


def refusal(plane: ControlPlane, body: Mapping[str, Any]) -> str:
    """What the API server has against the object; empty if it takes it."""
    options = ("--dry-run=server", "--validate=strict", "-o", "name", "-f", "-")
    done = plane.kubectl("create", *options, stdin=json.dumps(body), check=False)
    return "" if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("shape", ["plan", "phases"])
def test_what_agents_are_given_for_one_cluster(shape: str, plane: ControlPlane, tmp_path: Path) -> None:
    options = ("--deliver", shape, *(("--phase", "ImageCleanup") if shape == "phases" else ()))
    words = ("render", str(ROOT / "examples" / "three-node"), "--output-dir", str(tmp_path))
    assert run(["upgradeplan", *words, *AGENTS, *REPOSITORY, *options]) == 0
    found = [*objects_of(tmp_path)]
    kinds = {"GitRepo", "AppProject", "Application", "GitRepository", "Kustomization", "FleetFile"}
    assert {body["kind"] for _, body in found} == kinds | ({"ApplicationSet"} if shape == "phases" else set())
    assert {place: text for place, body in found if (text := refusal(plane, body))} == {}


def test_what_agents_are_given_for_many_clusters(plane: ControlPlane, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples" / "many-clusters" / "clusters", tmp_path / "clusters")
    words = ("render", "--clusters", str(tmp_path / "clusters"), "--output-dir", str(tmp_path / "out"), "--jobs", "1")
    assert run(["upgradeplan", *words, *AGENTS, *REPOSITORY]) == 0
    found = [*objects_of(tmp_path / "out")]
    kinds = {"GitRepo", "ClusterGroup", "AppProject", "ApplicationSet", "GitRepository", "Kustomization", "FleetFile"}
    assert {body["kind"] for _, body in found} == kinds
    assert {place: text for place, body in found if (text := refusal(plane, body))} == {}


@pytest.mark.parametrize(
    ("kind", "spec", "field"),
    [
        pytest.param("GitRepo", {"repo": "https://git.example.com/a.git", "path": ["a"]}, "spec.path", id="Fleet"),
        pytest.param("FleetFile", {"helm": {"waitForJob": True}}, "spec.helm.waitForJob", id="fleet.yaml"),
        pytest.param("Application", {"syncPolicy": {"selfHeal": False}}, "spec.syncPolicy.selfHeal", id="Argo CD"),
        pytest.param("Kustomization", {"healthCheckExpr": []}, "spec.healthCheckExpr", id="Flux"),
    ],
)
def test_a_field_that_an_agent_does_not_know_is_refused(
    kind: str, spec: Mapping[str, Any], field: str, plane: ControlPlane
) -> None:
    groups = {"GitRepo": "fleet.cattle.io/v1alpha1", "FleetFile": "fleet.test/v1"}
    groups |= {"Application": "argoproj.io/v1alpha1", "Kustomization": "kustomize.toolkit.fluxcd.io/v1"}
    metadata = {"name": "some", "namespace": "default"}
    body = {"apiVersion": groups[kind], "kind": kind, "metadata": metadata, "spec": spec}
    assert f'unknown field "{field}"' in refusal(plane, body)
