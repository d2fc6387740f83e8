"""`index.yaml` answers a reviewer's questions: what runs, when, what it waits for, what is left out, what goes back."""

from __future__ import annotations

from difflib import unified_diff
from typing import Any

import pytest
from support.rendered_plans import Rendered, node, plan, release, render_made, server_version, three_nodes, version

from renderer.digest import digest_of
from renderer.layout.index import pending_of
from renderer.model.document_type import RENDERED_PLAN
from renderer.validation import document_problems
from renderer.yaml_io import parse

pytestmark = pytest.mark.slow


def index(rendered: Rendered, layout: str = "plain") -> dict[str, Any]:
    return dict(parse(rendered.files(layout)["index.yaml"], "index.yaml")[0].value)


def step(rendered: Rendered, phase: str, name: str) -> dict[str, Any]:
    phases = {entry["name"]: entry for entry in index(rendered)["phases"]}
    return dict(next(entry for entry in phases[phase]["steps"] if entry["name"] == name))


def multi(**spec: Any) -> Rendered:
    return render_made(*three_nodes(**{"version": "v1.8.0", **spec}))


def test_it_says_what_it_is_an_index_of() -> None:
    rendered = multi()
    found = index(rendered)
    assert list(found) == ["apiVersion", "kind", "plan", "digest", "layout", "images", "phases", "files"]
    assert (found["kind"], found["plan"], found["layout"]) == ("RenderedPlan", "up", "plain")
    (document,) = parse(rendered.files()["index.yaml"], "index.yaml")
    assert document_problems(document, RENDERED_PLAN) == []
    assert found["images"] == list(rendered.plan.images)
    assert found["files"] == sorted(file for file in rendered.files() if file != "index.yaml")
    assert index(rendered, "kustomize")["layout"] == "kustomize"
    assert index(rendered, "kustomize")["digest"] == found["digest"] == rendered.plan.digest


def test_the_digest_is_over_the_phases_and_each_phase_over_its_steps() -> None:
    found, changed = multi().plan, multi(restoreVM=True).plan
    assert found.digest == digest_of(["up", *(phase.digest for phase in found.phases)])
    differing = [a.phase.name for a, b in zip(found.phases, changed.phases, strict=True) if a.digest != b.digest]
    assert differing == ["NodeUpgrade"]


@pytest.mark.parametrize("layout", ["plain", "kustomize"])
def test_another_image_tag_changes_the_lines_that_name_it_and_one_digest(layout: str) -> None:
    """In a pull request nobody has to look past digests for what has changed."""
    old, new = (multi(upgrade=tag, restoreVM=True).files(layout) for tag in ("v1.8.0", "v1.8.1"))
    assert [*old] == [*new]
    diff = [line for file in old for line in unified_diff(old[file].splitlines(), new[file].splitlines(), n=0)]
    added = [line for line in diff if line.startswith("+") and not line.startswith("+++")]
    digests = [line for line in added if "v1.8.1" not in line]
    assert [line.partition(":")[0] for line in digests] == ["+digest"]
    assert len(added) > 10
    assert len(added) == len([line for line in diff if line.startswith("-") and not line.startswith("---")])


def test_every_manifest_is_named_with_file_and_object() -> None:
    rendered = multi(restoreVM=True)
    text = rendered.files()["index.yaml"]
    for manifest in rendered.plan.manifests():
        assert manifest.file in text
        assert f"object: {manifest.ref}" in text or f"object: '{manifest.ref}'" in text or manifest.run_time


def test_when_a_step_runs() -> None:
    rendered = multi()
    assert step(rendered, "ImagePreload", "VersionGuard")["runs"] == "before the phase's active status is recorded"
    assert step(rendered, "NodeUpgrade", "RancherDone")["runs"] == "after the phase's completed status is recorded"
    assert "runs" not in step(rendered, "ImagePreload", "Preload")
    undo = step(rendered, "NodeUpgrade", "SkipManifests")["undo"]
    assert undo["runs"] == "when the plan ends, whatever its result, if this step was completed"
    assert undo["onFailure"] == "a warning, and the upgrade continues"
    assert step(multi(restoreVM=True), "NodeUpgrade", "RestoreVM")["skipUnless"] == {
        "probe": r'field data["<node>"] of ConfigMap harvester-system/up-restore-vm matches /\S/',
        "reason": "no virtual machine was stopped on this node",
    }


def test_what_a_step_waits_for_in_words() -> None:
    rendered = multi()
    guard = step(rendered, "ImagePreload", "VersionGuard")
    assert guard["waitsFor"] == ["version v1.7.1 may be upgraded to v1.8.0"]
    drain = step(rendered, "NodeUpgrade", "PreDrain")
    assert drain["trigger"].startswith('field metadata.annotations["rke.cattle.io/pre-drain"] of Secret fleet-local/<m')
    assert drain["waitsFor"] == ["Job harvester-system/<pre-drain-job> is ready (condition Complete is True)"]
    assert drain["lane"] == "drain"
    assert drain["hold"] == "Node upgrade paused as requested by the user"
    (reboot,) = step(rendered, "NodeUpgrade", "Reboot")["waitsFor"]
    assert "osImage of Node <node> is 'Harvester v1.8.0'" in reboot
    restore = step(multi(restoreVM=True), "NodeUpgrade", "RestoreVM")
    assert restore["noGate"] == "the upgrade continues while virtual machines start"
    phase = next(entry for entry in index(rendered)["phases"] if entry["name"] == "NodeUpgrade")
    until = "condition Ready of every other Node is True"
    assert phase["lanes"] == [{"name": "drain", "atMost": 1, "requirePeers": until}]


def test_what_becomes_of_a_manifest() -> None:
    rendered = multi(restoreVM=True)

    def manifest(phase: str, name: str) -> dict[str, Any]:
        entry = step(rendered, phase, name)
        return dict(entry["manifests"][0] if "manifests" in entry else entry["nodes"][0]["manifests"][0])

    wait = manifest("NodeUpgrade", "ReplicaWait")
    assert (wait["raiseOnly"], wait["whenAbsent"]) == (True, "skip")
    assert wait["return"] == {"success": "all", "abort": "all", "failure": "all"}
    cluster = manifest("NodeUpgrade", "Provision")
    assert "whenAbsent" not in cluster
    assert cluster["return"]["success"] == ["spec.rkeConfig.upgradeStrategy"]
    assert cluster["runtimeFields"] == ["spec.rkeConfig.provisionGeneration"]
    assert manifest("NodeUpgrade", "AcknowledgePreDrain")["return"] == "never"
    assert manifest("ClusterUpgrade", "KeepWorkloadUpdates")["union"] == "spec.diff.comparePatches"
    assert manifest("NodeUpgrade", "RestoreVM")["lifetime"] == "kept until the plan is deleted"
    assert manifest("RepoCreate", "Service")["lifetime"] == "maintained until the plan has ended"
    assert set(manifest("ClusterUpgrade", "Manifests")) == {"file", "object"}


def test_what_is_skipped_and_why() -> None:
    rendered = multi(imagePreloadOption={"concurrency": -1}, force=True, image="iso")
    assert step(rendered, "ImagePreload", "Preload")["skipped"] == "spec.imagePreloadOption.concurrency is negative"
    assert step(rendered, "ImagePreload", "VersionGuard")["skipped"] == "spec.force skips the version guard"
    assert step(rendered, "ISODownload", "Image")["omitted"][0]["template"] == "virtual-machine-image.yaml.j2"
    assert step(rendered, "NodeUpgrade", "SingleNode")["skipped"] == "with several nodes Rancher sets the pace"
    cluster = (node("n1"), node("w1", witness="true"), node("w2", witness="true"))
    mixed = render_made(plan(version="v1.8.0", restoreVM=True), release(), version(), server_version(), *cluster)
    restore = step(mixed, "NodeUpgrade", "RestoreVM")
    assert restore["skipped"] == [{"reason": "a witness node runs no virtual machines", "nodes": ["w1", "w2"]}]
    assert [entry["name"] for entry in restore["nodes"]] == ["n1"]


def test_what_is_pending_and_how_it_is_given() -> None:
    rendered = render_made(plan())
    phases = {entry["name"]: entry for entry in index(rendered)["phases"]}
    assert [item["input"] for item in phases["RepoCreate"]["pending"]] == ["nodes"]
    assert step(rendered, "ISODownload", "Image")["pending"] == [
        {
            "input": "version",
            "remedy": "give the Version object that spec.version names, from namespace harvester-system",
        }
    ]
    assert set(pending_of(rendered.plan)) == {
        "nodes",
        "version",
        "previousVersion",
        "releaseMetadata",
        "toolkitTag",
        "imageLists",
    }
    assert pending_of(multi().plan) == {}


def test_which_nodes_are_held() -> None:
    held = multi(nodeUpgradeOption={"pauseNodes": ["n2"]})
    assert step(held, "NodeUpgrade", "PreDrain")["heldNodes"] == ["n2"]
    assert "heldNodes" not in step(held, "NodeUpgrade", "PostDrain")
