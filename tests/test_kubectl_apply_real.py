"""`kubectl apply -R` on a rendered folder, by the real kubectl on the real API server: what must not be applied from
outside, or not before its turn, is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from controlplane.cluster import ControlPlane
from support.rehearsals import ROOT

from renderer.cli.program import run

AGENTS = ("--format", "flux", "--format", "argocd", "--format", "fleet")
PHASES = (*AGENTS, "--deliver", "phases", "--phase", "ImageCleanup")
MADE = {
    "virtualmachineimages.harvesterhci.io": "ISO image",
    "deployments": "repository",
    "jobs": "upgrade of the cluster",
    "plans.upgrade.cattle.io": "preloading and cleanup",
    "upgradeplans.management.harvesterhci.io": "plan",
}
PREPARED = {"virtualmachineimages.harvesterhci.io": 1, "deployments": 1, "plans.upgrade.cattle.io": 1}
"""What the phases before the upgrade of the cluster make. They may be applied from outside."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param((), PREPARED, id="plain"),
        pytest.param(("--format", "kustomize"), PREPARED, id="kustomize"),
        pytest.param(AGENTS, {"upgradeplans.management.harvesterhci.io": 1}, id="the plan"),
        pytest.param(PHASES, {}, id="phases"),
        pytest.param((*AGENTS, "--deliver", "review"), {}, id="review"),
    ],
)
def test_kubectl_applies_nothing_before_its_turn(
    options: tuple[str, ...], expected: dict[str, int], wiped_control_plane: ControlPlane, tmp_path: Path
) -> None:
    folder = ("--output-dir", str(tmp_path), "--repo", "https://git.example.com/a.git")[: 4 if options[2:] else 2]
    assert run(["upgradeplan", "render", str(ROOT / "examples" / "three-node"), *folder, *options]) == 0
    wiped_control_plane.kubectl("apply", "-R", "-f", str(tmp_path), check=False)
    found = {kind: _count(wiped_control_plane, kind) for kind in MADE}
    assert {kind: count for kind, count in found.items() if count} == expected


@pytest.mark.parametrize("phase", ["20-iso-download", "50-image-preload"])
def test_a_phase_is_applied_by_its_kustomization(phase: str, wiped_control_plane: ControlPlane, tmp_path: Path) -> None:
    command = ["upgradeplan", "render", str(ROOT / "examples" / "three-node"), "--output-dir", str(tmp_path)]
    assert run([*command, *PHASES]) == 0
    (folder,) = tmp_path.glob(f"*/phases/{phase}")
    assert "created" in wiped_control_plane.kubectl("apply", "-k", str(folder)).stdout
    assert _count(wiped_control_plane, "jobs") == 1


def test_the_rules_for_argo_leave_the_settings_of_others(wiped_control_plane: ControlPlane, tmp_path: Path) -> None:
    """As `render` says them: the folder is applied, and argocd-cm is patched."""
    plane = wiped_control_plane
    plane.create_namespace("argocd")
    theirs = "{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cm, namespace: argocd}, data: {url: theirs}}"
    plane.kubectl("apply", "-f", "-", stdin=theirs)
    command = ["upgradeplan", "render", str(ROOT / "examples" / "single-node"), "--output-dir", str(tmp_path), *AGENTS]
    assert run(command) == 0
    (patch,) = tmp_path.glob("*/agents/argocd/argocd-cm.patch")
    plane.kubectl("apply", "-f", str(patch.parent), check=False)
    plane.kubectl("-n", "argocd", "patch", "configmap", "argocd-cm", "--patch-file", str(patch))
    data = plane.api.get("/api/v1/namespaces/argocd/configmaps/argocd-cm")["data"]
    assert data["url"] == "theirs"
    assert "resource.customizations.health.upgrade.cattle.io_Plan" in data


def _count(plane: ControlPlane, kind: str) -> int:
    return len(plane.kubectl("get", kind, "-A", "-o", "name").stdout.splitlines())
