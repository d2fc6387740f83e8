"""Lists that are looked at now and then, such as what checks of a cluster look at: each is read when it is asked for,
kept for a while, and let go. Nobody watches them, since most are long and matter for a few minutes of an upgrade. Of
each object what checks read is kept.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconcile.cluster.protocol import Cluster
from reconcile.observe.kept_fields import for_checks
from reconcile.observe.source import DirectSource
from reconcile.probes.look import Group, ReadFailure
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, ref_of

Listed = tuple[Body, ...] | ReadFailure

_KEPT = 60.0
"""Seconds for which a list is kept that was read from the cluster."""
_KEPT_BRIEFLY = 10.0
"""The same for what costs nothing, a list of a watch; and for one that could not be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    until: float
    answer: Listed


class SeldomLists:
    """`watched` answers from a watch that there is anyway; None if there is none."""

    def __init__(
        self, cluster: Cluster, kinds: Kinds, clock: Callable[[], float], watched: Callable[[Group], Listed | None]
    ) -> None:
        self._direct = DirectSource(cluster, kinds, for_checks)
        self._clock = clock
        self._watched = watched
        self._kept: dict[Group, _Kept] = {}

    def list(self, group: Group) -> Listed:
        """Some seconds old at most."""
        kept, now = self._kept.get(group), self._clock()
        if kept is None or kept.until <= now:
            kept = self._kept[group] = self._read(group, kept, now)
        return kept.answer

    def let_go(self) -> None:
        """Forgets lists that were not used in time."""
        if self._kept:
            now = self._clock()
            self._kept = {group: kept for group, kept in self._kept.items() if kept.until + _KEPT > now}

    def _read(self, group: Group, before: _Kept | None, now: float) -> _Kept:
        found = self._watched(group)
        if found is not None:
            return _Kept(until=now + _KEPT_BRIEFLY, answer=found)
        found = self._direct.list(group)
        if isinstance(found, ReadFailure):
            return _Kept(until=now + _KEPT_BRIEFLY, answer=found)
        same = (
            before is not None and not isinstance(before.answer, ReadFailure) and _marks(before.answer) == _marks(found)
        )
        return _Kept(until=now + _KEPT, answer=before.answer if before is not None and same else found)


def _marks(found: tuple[Body, ...]) -> list[tuple[object, object]]:
    """Tells whether a list is still what it was."""
    return [(ref_of(body), body["metadata"].get("resourceVersion")) for body in found]
