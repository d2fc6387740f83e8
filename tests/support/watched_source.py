"""Support for tests of the loop over watches, on the simulated clock and in one thread: what the real loop reads from,
with the very list-watches, but each takes its turns when it is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconcile.cluster.listwatch import FLOOR
from reconcile.observe.cached import CachedSource, Pace, Turn
from reconcile.probes.look import Group, ReadFailure
from reconcile.simulator.rehearsal.rehearsal import Rehearsal
from renderer.model.ref import Body, Ref
from support.rehearsals import START


@dataclass
class _Watch:
    """One watch's turns: when the next is due, and what it has brought already."""

    turn: Turn
    due: float = 0.0
    version: int = -1


class WatchedSource:
    """A `Source`: `CachedSource`, brought up to date before each answer, as far as its watches get."""

    def __init__(self, scene: Rehearsal) -> None:
        self._scene = scene
        self._watches: list[_Watch] = []
        pace = Pace(clock=self._now, random=lambda: 0.5, window=0, begin=self._begin)
        self._cached = CachedSource(scene.client, scene.deps.kinds, lambda ref: None, pace)

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        self._catch_up()
        return self._cached.get(ref)

    def list(self, group: Group, fields: str = "") -> tuple[Body, ...] | ReadFailure:
        self._catch_up()
        return self._cached.list(group, fields)

    def note(self, body: Body) -> None:
        self._cached.note(body)

    def _now(self) -> float:
        return (self._scene.clock.now() - START).total_seconds()

    def _begin(self, turn: Turn) -> None:
        self._watches.append(_Watch(turn))
        self._take(self._watches[-1])

    def _catch_up(self) -> None:
        version = self._scene.cluster.store.version
        for watch in self._watches:
            if watch.version != version and watch.due <= self._now():
                self._take(watch)

    def _take(self, watch: _Watch) -> None:
        """One that did well may go on at once, and has something to do when something has changed."""
        version = self._scene.cluster.store.version
        pause = watch.turn()
        watch.due = self._now() + pause if pause > FLOOR else 0.0
        watch.version = version if 0 < pause <= FLOOR else -1


def over_watches(scene: Rehearsal) -> Rehearsal:
    """The same rehearsal, with a loop that reads from watches."""
    scene.deps = replace(scene.deps, source=WatchedSource(scene))
    return scene
