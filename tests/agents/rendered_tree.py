"""A delivery tree as CI commits it, in revisions: each a folder, the newest one under the link `current`."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from support.rehearsals import ROOT

from renderer.cli.program import run
from renderer.model.document_type import WAVES
from renderer.yaml_io import dump, parse

Edit = Callable[[Path], object]


class ServedTree(Protocol):
    """A tree whose newest revision a source serves."""

    @property
    def revision(self) -> str: ...
    @property
    def current(self) -> Path: ...
    def documents(self, path: str) -> list[Any]: ...


class RenderedClusters:
    """What `render --clusters --format flux` writes for the example of many clusters, with these waves."""

    revision = "r1"

    def __init__(self, folder: Path, waves: list[dict[str, Any]]) -> None:
        self.current = folder / self.revision
        clusters = folder / "clusters"
        shutil.copytree(ROOT / "examples" / "many-clusters" / "clusters", clusters)
        (clusters / "waves.yaml").write_text(dump(WAVES.document({"name": "v1-8-0", "waves": waves})))
        words = ("render", "--clusters", str(clusters), "--output-dir", str(self.current), "--format", "flux")
        assert run(["upgradeplan", *words, "--repo", "https://git.example.com/sites.git", "--jobs", "1"]) == 0

    def documents(self, path: str) -> list[Any]:
        """All documents of a file of the rollout."""
        text = (self.current / "rollout" / path).read_text(encoding="utf-8")
        return [document.value for document in parse(text, path)]


class RenderedTree:
    """What `render --format flux --format argocd --format fleet` writes for an example, as a branch in Git has it."""

    def __init__(self, folder: Path, example: str, *options: str) -> None:
        self.folder = folder
        formats = [word for agent in ("flux", "argocd", "fleet") for word in ("--format", agent)]
        repository = ("--repo", "https://git.example.com/site.git")
        words = ("render", str(ROOT / "examples" / example), "--output-dir", str(folder / "r1"))
        assert run(["upgradeplan", *words, *formats, *repository, *options]) == 0
        (self.plan,) = [path.name for path in (folder / "r1").iterdir() if path.is_dir()]
        self._point_to("r1")

    @property
    def revision(self) -> str:
        return (self.folder / "current").readlink().name

    @property
    def current(self) -> Path:
        return self.folder / self.revision

    def commit(self, edit: Edit = lambda folder: None) -> str:
        """A new revision; `edit` changes the plan's folder in it."""
        new = f"r{int(self.revision[1:]) + 1}"
        shutil.copytree(self.current, self.folder / new, symlinks=True)
        edit(self.folder / new / self.plan)
        self._point_to(new)
        return new

    def documents(self, path: str) -> list[Any]:
        """All documents of a file below the plan's folder."""
        file = self.current / self.plan / path
        return [document.value for document in parse(file.read_text(encoding="utf-8"), path)]

    def _point_to(self, revision: str) -> None:
        link = self.folder / "next"
        link.symlink_to(revision)
        link.replace(self.folder / "current")
