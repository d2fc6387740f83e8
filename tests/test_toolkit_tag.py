"""The tag of the toolkit's image that `install` sets, and the line that says where it is known from."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support.installed import by_default
from support.rehearsals import ROOT, START

from reconcile.cli.given_installation import GivenInstallation
from reconcile.cluster.protocol import Cluster
from reconcile.install.toolkit_tag import known_tag
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from renderer.cli.program import run
from renderer.model.ref import Body

NAME = "harvester-upgrade-manager-controller-manager"
PLACE = f"Deployment harvester-system/{NAME}"
RELEASE = "harvester-release.yaml"


def version(name: str) -> Body:
    metadata = {"name": name, "namespace": "harvester-system"}
    return {"apiVersion": "harvesterhci.io/v1beta1", "kind": "Version", "metadata": metadata, "spec": {"isoURL": ""}}


def runs(release: str) -> Body:
    setting = {"apiVersion": "harvesterhci.io/v1beta1", "kind": "Setting", "metadata": {"name": "server-version"}}
    return {**setting, "value": release}


def deployment(image: str, *, ours: bool = False, tag: str = "") -> Body:
    labels = {"control-plane": "controller-manager"} | ({"app.kubernetes.io/part-of": "upgradeplan"} if ours else {})
    env = {"env": [{"name": "UPGRADEPLAN_TOOLKIT_TAG", "value": tag}]} if tag else {}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "manager", "image": image, **env}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": NAME, "namespace": "harvester-system", "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


def plan(phase: str, progressing: str) -> Body:
    body: dict[str, Any] = {"apiVersion": "management.harvesterhci.io/v1beta1", "kind": "UpgradePlan"}
    condition = {"type": "Progressing", "status": progressing, "reason": "X", "message": ""}
    status = {"currentPhase": phase, "conditions": [{**condition, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
    return {**body, "metadata": {"name": "up"}, "spec": {"version": "v1.8.1"}, "status": status}


UNDER, OVER = plan("NodeUpgrading", "True"), plan("Succeeded", "False")
THEIRS = deployment("rancher/harvester-upgrade-toolkit:v1.8.2")
OURS = deployment("upgradeplan:1", ours=True, tag="v1.8.3")
TEMPLATES = "from values.yaml of the templates"
NEWER = "from Version harvester-system/v1.8.1"
UNDER_WAY = f"as {PLACE} has it, since a plan is under way"


def cluster_of(objects: Sequence[Body]) -> Cluster:
    found = EmbeddedCluster(SimulatedClock(START))
    found.seed(objects)
    return found.client()


@pytest.mark.parametrize(
    ("objects", "tag", "source"),
    [
        pytest.param([], "", TEMPLATES, id="nothing"),
        pytest.param([runs("v1.8.4")], "", TEMPLATES, id="what-runs-says-nothing"),
        pytest.param([version("v1.8.1")], "v1.8.1", NEWER, id="version"),
        pytest.param([version("v1.7.2"), version("v1.8.1")], "v1.8.1", NEWER, id="old"),
        pytest.param([version("v1.7.2"), version("v1.8.0-rc1")], "", TEMPLATES, id="no-toolkit-yet"),
        pytest.param([version("master-head")], "", TEMPLATES, id="development"),
        pytest.param(
            [version("v1.8.1"), version("v1.9.0")],
            "",
            f"{TEMPLATES}, since Versions v1.8.1 and v1.9.0 are there; --release or --values chooses one",
            id="versions",
        ),
        pytest.param([THEIRS, version("v1.8.1")], "v1.8.2", f"from the image of {PLACE}", id="manager"),
        pytest.param(
            [deployment("r.example:5000/a/harvester-upgrade-toolkit:main-head@sha256:" + "0" * 64)],
            "main-head",
            f"from the image of {PLACE}",
            id="registry-and-digest",
        ),
        pytest.param([deployment("r.example:5000/harvester-upgrade-toolkit")], "", TEMPLATES, id="no-tag"),
        pytest.param([deployment("rancher/other:v1.8.2")], "", TEMPLATES, id="another-program"),
        pytest.param([OURS, version("v1.8.1")], "v1.8.1", NEWER, id="ours"),
        pytest.param([OURS, version("v1.8.1"), OVER], "v1.8.1", NEWER, id="over"),
        pytest.param([OURS, version("v1.8.1"), UNDER], "v1.8.3", UNDER_WAY, id="under-way"),
        pytest.param([deployment("upgradeplan:1", ours=True), version("v1.8.1"), UNDER], "", UNDER_WAY, id="none"),
    ],
)
def test_what_a_cluster_suggests(objects: list[Body], tag: str, source: str) -> None:
    found = known_tag(cluster_of(objects), by_default().values, "v1.8.0")
    assert (found.tag, found.source) == (tag, source)


def test_without_a_tag_in_the_templates_every_version_has_a_toolkit() -> None:
    assert known_tag(cluster_of([version("v1.7.2")]), by_default().values, None).tag == "v1.7.2"


def given(folder: Path, **words: Any) -> GivenInstallation:
    text = (ROOT / "examples" / "three-node" / RELEASE).read_text()
    (folder / RELEASE).write_text(text.replace("harvester: v1.8.0-rc1", "harvester: v1.8.1+build"))
    told = {"files": (), "release": None, "name": None, "templates": (), "crds": False}
    return GivenInstallation(**{**told, **words})


def values_of(folder: Path) -> tuple[str, ...]:
    (folder / "values.yaml").write_text("toolkitTag: v9\n")
    return (str(folder / "values.yaml"),)


def test_the_cluster_gives_way_to_values_and_they_to_the_release(tmp_path: Path) -> None:
    cluster = cluster_of([version("v1.8.3")])
    found, line = given(tmp_path).read(cluster)
    assert (found.values["toolkitTag"], line) == ("v1.8.3", "toolkitTag: v1.8.3, from Version harvester-system/v1.8.3")
    found, line = given(tmp_path, files=values_of(tmp_path)).read(cluster)
    assert (found.values["toolkitTag"], line) == ("v9", "toolkitTag: v9, from the values")
    release = str(tmp_path / RELEASE)
    found, line = given(tmp_path, files=values_of(tmp_path), release=release).read(cluster)
    assert found.values["toolkitTag"] == "v1.8.1-build"
    assert line == f"toolkitTag: v1.8.1-build, from the release in {release}"


def test_the_tag_of_the_templates_is_named_where_none_is_set(tmp_path: Path) -> None:
    found, line = given(tmp_path).read(cluster_of([]))
    assert (found.values["toolkitTag"], line) == ("", "toolkitTag: v1.8.0, from values.yaml of the templates")
    assert given(tmp_path, crds=True).read(cluster_of([version("v1.8.1")]))[1] == ""
    assert given(tmp_path).read()[1] == ""


def test_manifests_have_the_tag_of_a_release_and_stderr_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    release = str(ROOT / "examples" / "three-node" / RELEASE)
    assert run(["upgradeplan", "install", "--format", "plain", "--release", release]) == 0
    said = capsys.readouterr()
    assert "- name: UPGRADEPLAN_TOOLKIT_TAG\n          value: v1.8.0-rc1\n" in said.out
    assert said.err == f"toolkitTag: v1.8.0-rc1, from the release in {release}\n"


def test_a_file_that_is_no_release(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(ROOT / "examples" / "three-node" / "version.yaml")
    assert run(["upgradeplan", "install", "--format", "plain", "--release", file]) == 2
    assert "version.yaml: holds no release" in capsys.readouterr().err
