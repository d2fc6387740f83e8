"""Tells the simulation on a real API server what has changed, so that it reads that and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.cluster import ControlPlane

from reconcile.simulator.actors.simulation import ClusterVersion
from renderer.model.ref import Kind


class Changes:
    """What others, or the simulation itself, have written since it last began to act; look() before each time."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._revision = 0
        self._shapes: dict[int, Mapping[str, tuple[int, int]]] = {}
        self.look()

    @property
    def version(self) -> ClusterVersion:
        return ClusterVersion(now=lambda: self._revision, changes=self._changes)

    def look(self) -> None:
        """What is written between these two questions counts as seen: whoever acts reads only afterwards."""
        if (revision := self._plane.revision) != self._revision:
            before = {self._revision: self._shapes[self._revision]} if self._shapes else {}
            self._shapes = {**before, revision: self._plane.shapes()}
            self._revision = revision

    def _changes(self, kind: Kind, since: Any) -> tuple[()] | None:
        """Nobody tells what it is that has changed."""
        before = self._shapes.get(since)
        is_same = before is not None and before.get(kind.plural) == self._shapes[self._revision].get(kind.plural)
        return () if is_same else None
