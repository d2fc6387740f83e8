"""The dependencies of a reconciler: the cluster, where to read from, how to render, and what time it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from reconcile.cluster.protocol import Cluster
from reconcile.loop.rendering import Rendering
from reconcile.observe.fetching import Read
from reconcile.observe.readings import Readings
from reconcile.observe.source import Source, Watched, nothing_watched
from reconcile.schemas import Schemas
from renderer.catalog.kinds import Kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcilerDeps:
    """The dependencies of a reconciler. `attended(since)` is how many seconds since then count; `watched` has what need
    not be read. Pre-flight checks are carried out unless `checked` is False, as somebody may ask of a rehearsal."""

    cluster: Cluster
    source: Source
    rendering: Rendering
    schemas: Schemas
    readings: Readings
    read: Read
    now: Callable[[], datetime]
    attended: Callable[[datetime], float]
    watched: Watched = nothing_watched
    checked: bool = True

    @property
    def kinds(self) -> Kinds:
        return self.rendering.catalog.kinds
