"""The build happens once, wholly or not at all; its absence is said aloud. Runs without Go and without a cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from controlplane import binaries, build

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parents[1]
FOLDER = f"controlplane-{binaries.kube_version()}-{binaries.etcd_version()}"
FAKE_GO = """#!/bin/sh
echo "$@" >> "$CALLS"
[ "$1" = build ] || exit 0
[ -z "$BROKEN" ] || { echo "no space left on device" >&2; exit 1; }
case "$4" in
*/) for name in kube-apiserver kube-controller-manager; do : > "$4$name"; chmod +x "$4$name"; done ;;
*) [ -z "$GATE" ] || read _ < "$GATE"; : > "$4"; chmod +x "$4" ;;
esac
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An empty cache, and a `go` that writes down how it was called."""
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(FAKE_GO, encoding="ascii")
    go.chmod(0o755)
    (tmp_path / "calls").touch()
    return {
        "PATH": f"{go.parent}:{os.defpath}",
        "PYTHONPATH": os.fspath(TESTS),
        "UPGRADEPLAN_CACHE": os.fspath(tmp_path / "cache"),
        "CALLS": os.fspath(tmp_path / "calls"),
    }


BUILD = [sys.executable, "-u", "-c", "from controlplane import build; build.build_servers(print)"]


def builds(environment: dict[str, str]) -> int:
    return sum(line.startswith("build") for line in Path(environment["CALLS"]).read_text("ascii").splitlines())


def test_two_runs_at_once_build_once(environment: dict[str, str], tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with running_build(environment | {"GATE": os.fspath(gate)}) as first:
        assert "the first build takes about 8 minutes" in first.readline() + first.readline()
        with running_build(environment) as second:
            assert second.readline() == "another run is building the same; waiting for it\n"
            gate.write_text("go on\n", encoding="ascii")
            assert "kubernetes: built" in first.read()
            assert second.read() == ""
    assert builds(environment) == 2  # etcd, and the Kubernetes pair
    folder = tmp_path / "cache" / FOLDER
    assert sorted(file.name for file in folder.iterdir()) == sorted(binaries.SERVERS)

    subprocess.run(BUILD, env=environment, check=True)
    assert builds(environment) == 2


@contextmanager
def running_build(environment: dict[str, str]) -> Iterator[IO[str]]:
    with subprocess.Popen(BUILD, env=environment, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        try:
            yield run.stdout
        finally:
            run.kill()


def test_a_failed_build_leaves_nothing_and_says_why(environment: dict[str, str], tmp_path: Path) -> None:
    failed = subprocess.run(BUILD, env=environment | {"BROKEN": "1"}, capture_output=True, text=True, check=False)
    assert "go build failed:\nno space left on device" in failed.stderr
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [f"{FOLDER}.lock"]


def test_remains_of_a_killed_build_are_built_over(environment: dict[str, str], tmp_path: Path) -> None:
    half = tmp_path / "cache" / f"{FOLDER}.building" / "etcd"
    half.parent.mkdir(parents=True)
    half.write_text("half a binary", encoding="ascii")
    subprocess.run(BUILD, env=environment, check=True, capture_output=True)
    assert (tmp_path / "cache" / FOLDER / "etcd").read_bytes() == b""
    assert not half.parent.exists()


def test_assets_named_by_the_environment_are_used_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", os.fspath(tmp_path))
    for name in ("etcd", "kube-apiserver"):
        (tmp_path / name).touch(mode=0o755)
    assert binaries.why_absent() == "KUBEBUILDER_ASSETS lacks kube-controller-manager"
    with pytest.raises(build.BuildError, match="lacks kube-controller-manager; unset it"):
        build.build_servers(print)

    for name in ("kube-controller-manager", "kubectl"):
        (tmp_path / name).touch(mode=0o755)
    assert binaries.why_absent() is None
    here = binaries.built()
    assert here is not None
    assert {here.etcd.parent, here.kube_controller_manager.parent, here.kubectl.parent} == {tmp_path}


@pytest.fixture
def without_go(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.fspath(tmp_path), "UPGRADEPLAN_CACHE": os.fspath(tmp_path), "HOME": os.fspath(tmp_path)}


def pytest_run(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    chosen = [os.fspath(TESTS / "test_controlplane.py"), "-k", "pinned or outage", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *chosen]
    return subprocess.run(command, env=environment, cwd=TESTS.parent, capture_output=True, text=True, check=False)


def test_without_go_the_tests_are_skipped_and_counted(without_go: dict[str, str]) -> None:
    run = pytest_run(without_go)
    assert run.returncode == 0
    assert (
        "2 tests on the real control plane were SKIPPED: Go is not installed and no control plane has been built "
        "(`make controlplane` builds it)"
    ) in run.stdout.splitlines()[-3:]


def test_without_go_the_tests_fail_in_ci(without_go: dict[str, str]) -> None:
    run = pytest_run(without_go | {"CI": "true"})
    assert run.returncode == 1
    assert "Go is not installed and no control plane has been built, and CI=true wants it tested" in run.stdout
