"""The summary that is kept of a rendered cluster: it is small, since there may be thousands of clusters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import Protocol

from renderer.clusters.wave_choice import some_of
from renderer.errors import Problem
from renderer.frozen import frozen

LISTED = 20
"""Differing files that are named for one cluster; all are counted."""


@frozen
class FolderChanges:
    """Numbers of files that differ from the rendering, and the first of them as `changed path`."""

    missing: int = 0
    changed: int = 0
    stale: int = 0
    foreign: int = 0
    first: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.stale)


class Differences(Protocol):
    """Paths of a folder that differ from a rendering."""

    @property
    def missing(self) -> tuple[str, ...]: ...
    @property
    def changed(self) -> tuple[str, ...]: ...
    @property
    def stale(self) -> tuple[str, ...]: ...
    @property
    def foreign(self) -> tuple[str, ...]: ...


def counted(found: Differences) -> FolderChanges:
    """The differences as they are kept."""
    words = (("missing", found.missing), ("changed", found.changed), ("stale", found.stale))
    first = [f"{word} {path}" for word, paths in words for path in paths]
    counts = {word: len(paths) for word, paths in words}
    return FolderChanges(**counts, foreign=len(found.foreign), first=tuple(first[:LISTED]))


@frozen
class RenderedCluster:
    """A cluster's rendering, or what is wrong with it: then there is no plan. `folder` is its place in the output.
    `bundle` has the files by which an agent that pulls many clusters from one folder delivers the plan, and `jobs` the
    namespaces and names of the Jobs in them; none where no such agent is meant."""

    name: str
    plan: str = ""
    digest: str = ""
    folder: str = ""
    files: int = 0
    changes: FolderChanges = FolderChanges()
    pending: tuple[tuple[str, str], ...] = ()
    bundle: Mapping[str, str] = field(default_factory=dict)
    jobs: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def named(found: Iterable[tuple[str, Problem]]) -> Iterator[Problem]:
    """Each problem once, with the names of the clusters that have it."""
    clusters: dict[Problem, list[str]] = {}
    for name, problem in found:
        clusters.setdefault(problem, []).append(name)
    for problem, names in clusters.items():
        noun = "cluster" if len(names) == 1 else "clusters"
        yield replace(problem, message=f"{problem.message} ({noun} {some_of(names)})")
