"""ImageCleanup, and the shell scripts that run on nodes, run here with what they may find."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from support.expected_objects import multi, node_plan, same
from support.rendered_plans import image_lists, render_made, three_nodes

from renderer.model.probe import Severity

# ----------------------------------------------------------------------------------------------------- 3.8 ImageCleanup

RETAINED = (
    "harvester-upgrade",
    "longhorn-engine",
    "longhorn-instance-manager",
    "mirrored-banzaicloud-fluentd",
    "mirrored-fluent-fluent-bit",
)


def purged(previous: list[str], current: list[str]) -> str | None:
    """The value of IMAGES; None where the step is skipped."""
    documents = [document for document in three_nodes() if "facts" not in document]
    rendered = render_made(*documents, image_lists(previous, current))
    step = rendered.step("ImageCleanup/Purge")
    if step.skipped:
        assert step.skipped == "the new release uses every image of the previous one"
        return None
    return str(step.manifests[0].body["spec"]["upgrade"]["envs"][0]["value"])


def test_the_cleanup_plan() -> None:
    body = multi().body("ImageCleanup/Purge")
    script = body["spec"]["upgrade"]["args"][0]
    envs = [{"name": "IMAGES", "value": "docker.io/rancher/old:v1"}]
    assert same(body, node_plan("image-cleanup", 1, command=["sh", "-c"], args=[script], envs=envs))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("previous", "current", "expected"),
    [
        (["b:1", "a:1", "c:1"], ["c:1"], "a:1 b:1"),
        (["a:1", "a:1"], ["c:1"], "a:1"),
        (["a:1"], ["a:2"], "a:1"),
        (["a:1"], ["a:1", "b:1"], None),
        ([], ["a:1"], None),
        (["docker.io/rancher/x:v1", "localhost:5000/x:v1"], ["docker.io/rancher/x:v1"], "localhost:5000/x:v1"),
        ([f"docker.io/rancher/{name}:v1" for name in RETAINED], ["z:1"], None),
        ([f"registry.example.com:5000/deep/er/{name}" for name in RETAINED], ["z:1"], None),
        ([f"{name}@sha256:{'0' * 64}" for name in RETAINED], ["z:1"], None),
        ([f"r:5000/{name}:v1@sha256:{'0' * 64}" for name in RETAINED], ["z:1"], None),
        (["longhorn-engine-x:v1", "longhorn-engine/x:v1"], ["z:1"], "longhorn-engine-x:v1 longhorn-engine/x:v1"),
        (["x-longhorn-engine:v1"], ["z:1"], "x-longhorn-engine:v1"),
        (["longhorn-engine:5000/x"], ["z:1"], "longhorn-engine:5000/x"),  # a registry of that name is not the image
    ],
)
def test_what_is_purged(previous: list[str], current: list[str], expected: str | None) -> None:
    assert purged(previous, current) == expected


@pytest.mark.slow
def test_a_cleanup_that_fails_is_a_warning() -> None:
    (gate,) = multi().step("ImageCleanup/Purge").step.gates
    assert (gate.failure.message, gate.failure.severity) == ("image-cleanup plan job(s) failed", Severity.WARNING)


def test_without_a_previous_version_there_is_nothing_to_clean() -> None:
    documents = [
        d for d in three_nodes(version="v1.8.0", upgrade="dev") if d.get("kind") != "Setting" and "facts" not in d
    ]
    rendered = render_made(*documents)
    assert rendered.step("ImageCleanup/ImageLists").skipped == "the previous version is unknown"


# --------------------------------------------------------------------------------- the scripts, run with what they find


def script_of(step: str, where: Path) -> str:
    """A step's shell script with the host's root moved to `where`."""
    text = str(multi().body(step)["spec"]["upgrade"]["args"][0])
    return text.replace("/host", str(where))


def run(script: str, tools: Path, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{tools}:{os.environ['PATH']}"
    return subprocess.run(["sh", "-c", script], capture_output=True, text=True, env={"PATH": path, **env}, check=False)


def tool(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.slow
def test_the_script_that_skips_manifests(tmp_path: Path) -> None:
    script = script_of("NodeUpgrade/SkipManifests", tmp_path)
    manifests = tmp_path / "var/lib/rancher/rke2/server/manifests"
    assert run(script, tmp_path, MANIFESTS="a.yaml", SKIP_ACTION="apply").returncode == 0, "a worker has no such folder"
    manifests.mkdir(parents=True)
    assert run(script, tmp_path, MANIFESTS="", SKIP_ACTION="apply").returncode == 0
    assert run(script, tmp_path, MANIFESTS="a.yaml b.yaml", SKIP_ACTION="apply").returncode == 0
    assert sorted(path.name for path in manifests.iterdir()) == ["a.yaml.skip", "b.yaml.skip"]
    assert run(script, tmp_path, MANIFESTS="a.yaml b.yaml c.yaml", SKIP_ACTION="remove").returncode == 0
    assert list(manifests.iterdir()) == []
    assert run(script, tmp_path, MANIFESTS="a.yaml", SKIP_ACTION="other").returncode == 1
    assert script == script_of("NodeUpgrade/UnskipManifests", tmp_path)


@pytest.mark.slow
def test_the_script_that_removes_images(tmp_path: Path) -> None:
    """An image that is missing or in use is no failure."""
    script, tools = script_of("ImageCleanup/Purge", tmp_path), tmp_path / "tools"
    tool(tools / "chroot", f'[ "$2 $3" = "readlink -f" ] && echo /data/bin || exit 1; [ "$1" = "{tmp_path}" ]')
    assert run(script, tools, IMAGES="a:1").returncode == 0, "without crictl there is nothing to do"
    tool(tmp_path / "data/bin/crictl", f'echo "$@" >> {tmp_path}/log; [ "$4" != "b:1" ]')
    done = run(script, tools, IMAGES="a:1 b:1 c:1")
    assert done.returncode == 0
    assert done.stderr == "kept: b:1\n"
    endpoint = f"--runtime-endpoint unix://{tmp_path}/run/k3s/containerd/containerd.sock"
    assert (tmp_path / "log").read_text().splitlines() == [f"{endpoint} rmi {image}" for image in ("a:1", "b:1", "c:1")]
