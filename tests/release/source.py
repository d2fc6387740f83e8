"""The clone that a release is made of: version, commit and the commit's time; and how other programs are run."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from hatch_build import commit_of

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """`commit` ends in `-dirty` where the work tree differs from it; `epoch` is when it was committed, in seconds."""

    version: str
    commit: str
    epoch: int

    @property
    def created(self) -> str:
        """The commit's time as RFC 3339 has it."""
        return datetime.fromtimestamp(self.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def source_of(root: Path = ROOT) -> Source:
    """The clone as it is now. SOURCE_DATE_EPOCH, if set, stands for the commit's time."""
    commit = commit_of(root)
    if commit is None:
        raise SystemExit(f"{root} is not a git clone: what is built must say its commit")
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    epoch = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "-C", root, "log", "-1", "--format=%ct")
    return Source(version=project["version"], commit=commit, epoch=int(epoch))


def run(*command: str | Path, environment: Mapping[str, str] | None = None, at: Path = ROOT) -> str:
    """What the command prints. Ends this program with the command's own words if it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=at, env={**os.environ, **(environment or {})}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        raise SystemExit(f"failed: {' '.join(words)}")
    return done.stdout.strip()
