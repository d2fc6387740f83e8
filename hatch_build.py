"""Records the commit in what is built, for `upgradeplan version`. A wheel of an sdist takes over the sdist's."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

KEPT = "COMMIT"
"""The record in an sdist, at its top."""
RECORD = "renderer/commit.txt"
"""The record in a wheel."""


class CommitHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls it for each wheel and sdist. A tree without git, and an editable install, have no record."""

    _written: Path | None = None

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        root = Path(self.root)
        if version != "editable":
            kept = root / KEPT
            record = kept if kept.exists() else self._write(commit_of(root))
            if record is not None:
                build_data["force_include"][str(record)] = RECORD if self.target_name == "wheel" else KEPT

    def _write(self, commit: str | None) -> Path | None:
        if commit is not None:
            with tempfile.NamedTemporaryFile("w", delete=False) as file:
                file.write(f"{commit}\n")
            self._written = Path(file.name)
        return self._written

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if self._written is not None:
            self._written.unlink()


def commit_of(root: Path) -> str | None:
    """The commit of a clone's work tree, with `-dirty` where it differs. None where `root` is no clone."""
    top = _git(root, "rev-parse", "--show-toplevel")
    if top is None or Path(top).resolve() != root.resolve():
        return None
    commit = _git(root, "rev-parse", "HEAD")
    return f"{commit}-dirty" if commit and _git(root, "status", "--porcelain") else commit


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)  # noqa: S603, S607
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
