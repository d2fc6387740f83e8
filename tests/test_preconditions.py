"""On which clusters the loop begins."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.rehearsals import template_set
from support.rendered_plans import server_version
from support.small_cluster import world

from reconcile.loop.preconditions import check_preconditions
from reconcile.observe.source import Source
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from renderer.cli.program import run
from renderer.errors import ExitCode, Problems

OLDEST = template_set().catalog.values["oldestServerVersion"]


def source(**setting: Any) -> Source:
    return world(more=[server_version(**setting)]).scene.deps.source


@pytest.mark.parametrize("version", ["v1.7.1", "v1.7.2", "v1.8.0", "1.10.0", "v1.8.0-rc1", "v1.7.1+build"])
def test_the_loop_begins_on_a_supported_version(version: str) -> None:
    assert check_preconditions(source(value=version), OLDEST) == ""


@pytest.mark.parametrize("version", ["v1.7.0", "v1.6.0", "v1.7.1-rc1"])
def test_the_loop_refuses_an_older_version(version: str) -> None:
    with pytest.raises(Problems) as caught:
        check_preconditions(source(value=version), OLDEST)
    [problem] = caught.value.problems
    assert caught.value.exit_code is ExitCode.NO
    assert f"runs {version}, and only v1.7.1 or newer" in problem.message


@pytest.mark.parametrize("version", [None, "", "v1.7-head", "f6bc010-dirty", "v"])
def test_what_cannot_be_compared_is_let_through_and_told(version: str | None) -> None:
    assert (
        check_preconditions(source(value=version), OLDEST)
        == f"Setting server-version is not a release: {version or ''!r}"
    )


def test_a_setting_that_is_missing_is_let_through() -> None:
    found = world(without=("Setting",)).scene.deps.source
    assert check_preconditions(found, OLDEST) == "Setting server-version is not a release: ''"


def test_a_setting_that_cannot_be_read_is_let_through_and_told() -> None:
    found = world()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.FAILED, verb="list", kind="Setting"))
    assert check_preconditions(found.scene.deps.source, OLDEST).startswith("Setting server-version cannot be read: ")


@pytest.mark.slow
def test_a_rehearsal_says_that_the_loop_would_not_begin(capsys: pytest.CaptureFixture[str]) -> None:
    example = Path(__file__).parent.parent / "examples" / "three-node-v1.6.1"
    assert run(["upgradeplan", "rehearse", "--quiet", str(example)]) == 1
    told = capsys.readouterr().out
    assert "would not start (Setting server-version: the cluster runs v1.6.0, and only v1.7.1 or newer" in told
    assert "simulated anyway, it ends in Succeeded after" in told


EXAMPLES = Path(__file__).parent.parent / "examples"


def edited(name: str, tmp_path: Path, *edits: tuple[str, str, str]) -> Path:
    """A copy of an example in which, in these files, the first text is the second."""
    folder = tmp_path / name
    shutil.copytree(EXAMPLES / name, folder)
    for file, old, new in edits:
        text = (folder / file).read_text()
        assert old in text
        (folder / file).write_text(text.replace(old, new))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("command", [["validate"], ["rehearse", "--quiet"]])
def test_force_is_not_offered_on_a_cluster_that_is_too_old_in_any_case(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    minimum = ("harvester-release.yaml", "minUpgradableVersion: v1.5.0", "minUpgradableVersion: v1.7.0")
    folder = edited("three-node-v1.6.1", tmp_path, minimum)
    assert run(["upgradeplan", *command, str(folder)]) == 1
    told = capsys.readouterr().err
    assert "the cluster runs v1.6.0" in told
    assert "or newer" in told
    assert "(current v1.6.0, target v1.6.1, minimum v1.7.0)" in told
    assert "spec.force" not in told


@pytest.mark.slow
@pytest.mark.parametrize("command", [["validate"], ["rehearse", "--quiet"]])
def test_a_node_that_no_job_would_find_is_no_risk_that_can_be_accepted(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loop would not begin, whatever the plan accepts."""
    accepted = "metadata:\n  annotations: {management.harvesterhci.io/accept-risk: node-hostname}"
    folder = edited(
        "three-node",
        tmp_path,
        ("nodes.yaml", "      kubernetes.io/hostname: charlie-2-tink-system\n", ""),
        ("upgradeplan.yaml", "metadata:", accepted),
    )
    assert run(["upgradeplan", *command, str(folder)]) == 1
    told = capsys.readouterr().err
    assert "Node charlie-2-tink-system has no label kubernetes.io/hostname" in told
    assert "accept the risk" not in told
