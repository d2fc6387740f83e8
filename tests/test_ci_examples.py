"""The pipelines of `examples/ci` by their plain shell steps, in a repository as their README describes it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.rendered_plans import ROOT

pytestmark = pytest.mark.slow

CI = ROOT / "examples" / "ci"
PROGRAMS = {
    "upgradeplan": f'exec "{sys.executable}" -m renderer.cli "$@"',
    "gh": 'echo "gh $*" >> "$CALLS"; cat "$7" >> "$CALLS"',
    "curl": 'echo "curl $*" >> "$CALLS"',
    "pip": ":",
}
"""Foreign ones write down what they are asked for."""


def github() -> Iterator[tuple[str, bool]]:
    """Each step, and whether it runs after a failure."""
    (job,) = yaml.safe_load((CI / "github.yaml").read_text(encoding="utf-8"))["jobs"].values()
    yield from ((step["run"], "failure()" in step.get("if", "")) for step in job["steps"] if "run" in step)


def gitlab() -> Iterator[tuple[str, bool]]:
    """The scripts as GitLab runs them: one shell for what comes before and the script, another one afterwards."""
    (job,) = yaml.safe_load((CI / "gitlab.yaml").read_text(encoding="utf-8")).values()
    yield "\n".join([*job["before_script"], *job["script"]]), False
    yield "\n".join(job["after_script"]), True


PIPELINES: dict[str, Any] = {"github": github, "gitlab": gitlab}


TOO_LONG = pytest.mark.full("four processes and a rehearsal; the folder that is stale, on GitLab")


class ReviewedRepository:
    """A clone whose branch `main` has a rendered upgrade; work goes on in another branch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "clone"
        self.calls = folder / "calls"
        programs = folder / "bin"
        programs.mkdir()
        for name, body in PROGRAMS.items():
            (programs / name).write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
            (programs / name).chmod(0o755)
        self.environ = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "CALLS": str(self.calls),
            "GITHUB_BASE_REF": "main",
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "NUMBER": "7",
            "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
            "CI_API_V4_URL": "https://gitlab.example/api/v4",
            "CI_PROJECT_ID": "1",
            "CI_MERGE_REQUEST_IID": "7",
            "REVIEW_TOKEN": "none",
        }
        origin = folder / "origin"
        shutil.copytree(ROOT / "examples" / "single-node", origin / "inputs")
        self.shell("upgradeplan render inputs --output-dir rendered && git init -q -b main . && git add -A", origin)
        self.shell("git -c user.name=a -c user.email=a@example.com commit -qm base", origin)
        self.shell(f"git clone -q {origin} {self.folder}", folder)

    def shell(self, command: str, folder: Path | None = None) -> int:
        done = subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=folder or self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert "Traceback" not in done.stderr
        return done.returncode

    def run(self, pipeline: str) -> list[int]:
        """The exit codes of the steps that run."""
        codes: list[int] = []
        for step, runs_always in PIPELINES[pipeline]():
            if runs_always or not any(codes):
                codes.append(self.shell(step))
        return codes

    def page(self, name: str) -> str:
        return (self.folder / "pages" / f"{name}.md").read_text(encoding="utf-8")

    def edit(self, old: str, new: str) -> None:
        path = self.folder / "inputs" / "upgradeplan.yaml"
        text = path.read_text(encoding="utf-8")
        assert old in text
        path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> ReviewedRepository:
    return ReviewedRepository(tmp_path)


@TOO_LONG
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_change_that_was_rendered_passes_and_is_shown_by_object(
    repository: ReviewedRepository, pipeline: str
) -> None:
    repository.edit("spec:", "spec:\n  upgrade: v9.9.9")
    assert repository.shell("upgradeplan render inputs --output-dir rendered") == 0
    assert set(repository.run(pipeline)) == {0}
    assert "#### Changed since the base branch: " in repository.page("render")
    assert "rancher/harvester-upgrade-toolkit:v9.9.9" in repository.page("render")
    assert "nothing blocks" in repository.page("preflight")
    assert "would succeed after" in repository.page("rehearse")
    calls = repository.calls.read_text(encoding="utf-8")
    assert "pages/render.md" in calls


@pytest.mark.parametrize("pipeline", [pytest.param("github", marks=TOO_LONG), "gitlab"])
def test_a_folder_that_was_not_rendered_again_fails_and_is_told_all_the_same(
    repository: ReviewedRepository, pipeline: str
) -> None:
    repository.edit("spec:", "spec:\n  upgrade: v9.9.9")
    assert 1 in repository.run(pipeline)
    assert "#### The folder is stale: render again, and commit it" in repository.page("render")
    assert "would succeed after" in repository.page("rehearse")
    assert "pages/render.md" in repository.calls.read_text(encoding="utf-8")
