"""The repositories that `examples` lays out, by the plain shell steps of their READMEs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from controlplane.waiting import PATIENCE
from support.rendered_plans import ROOT

pytestmark = pytest.mark.slow

STEPS = re.compile(r"(?<=^```sh\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
ALIKE = pytest.mark.full("six processes; the repository for Flux")
REPOSITORIES = (
    "many-clusters",
    "repositories/flux",
    pytest.param("repositories/argocd", marks=ALIKE),
    pytest.param("repositories/fleet", marks=ALIKE),
)
IN_GIT = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a"}


class LaidOut:
    """The examples in a folder of one's own, and one of them as a repository."""

    def __init__(self, folder: Path, name: str) -> None:
        shutil.copytree(ROOT / "examples", folder / "examples")
        self.folder = folder / "examples" / name
        program = folder / "bin" / "upgradeplan"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m renderer.cli "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
        self._environ = {**os.environ, **IN_GIT, "GIT_COMMITTER_EMAIL": "a@example.com", "PATH": path}
        self._environ["PYTHONPATH"] = str(ROOT)

    def shell(self, steps: str) -> str:
        done = subprocess.run(
            ["sh", "-e", "-c", steps],
            cwd=self.folder,
            env=self._environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
        assert done.returncode == 0, f"{steps}\n{done.stdout}{done.stderr}"
        return done.stdout

    def documents(self, pattern: str) -> list[dict[str, object]]:
        files = sorted(self.folder.glob(pattern))
        return [body for file in files for body in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("name", REPOSITORIES)
def test_the_steps_of_a_readme_lead_to_a_repository_that_agents_can_pull(name: str, tmp_path: Path) -> None:
    place = LaidOut(tmp_path, name)
    if name == "many-clusters":
        place.shell("git init -q -b main .")
    for steps in STEPS.findall((place.folder / "README.md").read_text(encoding="utf-8")):
        place.shell(steps)
    assert place.shell("git status --porcelain -- rendered") == ""
    assert len(place.shell("git log --oneline").splitlines()) >= 2
    pulled = [*pulled_paths(place)]
    assert pulled
    assert [path for path in pulled if not (place.folder / path / "kustomization.yaml").is_file()] == []


def pulled_paths(place: LaidOut) -> list[str]:
    """The folders that the agents' own objects point to."""
    paths: list[str] = []
    for body in place.documents("rendered/**/agents/*/*.yaml"):
        spec: dict[str, object] = dict(body.get("spec") or {})  # type: ignore[call-overload]
        source = spec.get("source") or spec
        found = source.get("paths") or [source.get("path")]  # type: ignore[attr-defined]
        paths += [path for path in found if path]
    return paths
