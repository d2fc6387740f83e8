"""On which clusters the loop begins."""

from __future__ import annotations

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
