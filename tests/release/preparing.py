"""Makes the clone ready for a version: what must hold, and the version in pyproject.toml and CHANGELOG.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

from release.source import ROOT, run, source_of

_UNRELEASED = "## Unreleased\n"
_VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)")


def prepare(version: str, today: date, root: Path = ROOT) -> None:
    """Commits version and changelog; nothing is left to do where that has been done. Ends the program with all that
    speaks against it."""
    if found := list(obstacles(version, root)):
        raise SystemExit("\n".join(found))
    if is_released(version, root):
        return
    project, changelog = root / "pyproject.toml", root / "CHANGELOG.md"
    project.write_text(with_version(project.read_text(encoding="utf-8"), version), encoding="utf-8")
    changelog.write_text(with_heading(changelog.read_text(encoding="utf-8"), version, today), encoding="utf-8")
    run("git", "-C", root, "commit", "-q", "-m", f"Release {version}", "--", project, changelog)


def obstacles(version: str, root: Path = ROOT) -> Iterator[str]:
    """What keeps this version from being released, each in a sentence."""
    if not _VERSION.fullmatch(version):
        yield f"{version!r} is not a version: write MAJOR.MINOR.PATCH"
        return
    source = source_of(root)
    if source.commit.endswith("-dirty"):
        yield "the work tree has changes that are not committed: commit or stash them"
    if _parts(version) < _parts(source.version):
        yield f"{version} is older than {source.version}, the version in pyproject.toml"
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not is_released(version, root) and not _unreleased(text).strip():
        yield "CHANGELOG.md has nothing under Unreleased"


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def is_released(version: str, root: Path) -> bool:
    """True if the clone has this version, and its changelog a heading for it."""
    text = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    return source_of(root).version == version and f"\n## {version} - " in text


def _unreleased(changelog: str) -> str:
    return changelog.partition(_UNRELEASED)[2].partition("\n## ")[0]


def with_version(project: str, version: str) -> str:
    return re.sub(r'^version = "[^"]*"', f'version = "{version}"', project, count=1, flags=re.MULTILINE)


def with_heading(changelog: str, version: str, today: date) -> str:
    """What was unreleased stands under the version's own heading."""
    return changelog.replace(_UNRELEASED, f"{_UNRELEASED}\n## {version} - {today.isoformat()}\n", 1)
