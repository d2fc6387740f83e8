"""One window of a watch on the embedded cluster: what has happened since a resourceVersion, and what happens next.

A window ends when its seconds have passed on the cluster's clock, when it is closed, or when it is cut. It waits for
writes and for the clock, and never by itself for time to pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from reconcile.cluster.errors import Away, Gone
from reconcile.cluster.protocol import EventType, WatchEvent
from reconcile.simulator.apiserver.clock import Clock
from reconcile.simulator.apiserver.selectors import Test
from reconcile.simulator.apiserver.store import Store, StoreChange
from renderer.model.ref import Body, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """The selection of a window, its start and its duration; 0 seconds is what has happened already.

    From version 0 it begins with all objects. `cut_short`: it is cut where it would begin to wait.
    """

    kind: Kind
    test: Test
    version: int
    seconds: int
    cut_short: bool = False


class EmbeddedWindow:
    """`protocol.Window` over the store. `is_cut` says whether the stream has been cut meanwhile."""

    def __init__(self, store: Store, clock: Clock, watched: Watched, is_cut: Callable[[], bool]) -> None:
        self._store = store
        self._clock = clock
        self._watched = watched
        self._is_cut = is_cut
        self._sent = self._seen = watched.version
        self._end: datetime = clock.now() + timedelta(seconds=watched.seconds)
        self._closed = False

    def __iter__(self) -> Iterator[WatchEvent]:
        while True:
            with self._store.changed:
                events = self._next_events()
            yield from events
            if not events:
                return

    def close(self) -> None:
        with self._store.changed:
            self._closed = True
            self._store.changed.notify_all()

    def _next_events(self) -> tuple[WatchEvent, ...]:
        """Waits until there are events; empty at the end. A bookmark is the last event of a window."""
        while not self._closed:
            if self._is_cut():
                raise Away("the stream was cut")
            if events := self._new_events() if self._seen else self._all_objects():
                return events
            if self._watched.cut_short:
                raise Away("the stream was cut")
            if self._clock.now() >= self._end:
                self._closed = True
                return self._bookmark()
            self._store.changed.wait()
        return ()

    def _all_objects(self) -> tuple[WatchEvent, ...]:
        self._seen = self._sent = self._store.version
        bodies = (body for body in self._store.all_of(self._watched.kind) if self._watched.test(body))
        return tuple(WatchEvent(type=EventType.ADDED, body=body) for body in bodies)

    def _new_events(self) -> tuple[WatchEvent, ...]:
        require_history(self._store, self._watched.kind, self._seen)
        changes = self._store.since(self._watched.kind, self._seen)
        self._seen = self._store.version
        events = tuple(event for change in changes if (event := _event(change, self._watched.test)))
        if events:
            self._sent = int(events[-1].body["metadata"]["resourceVersion"])
        return events

    def _bookmark(self) -> tuple[WatchEvent, ...]:
        """A bookmark, if there is a newer resourceVersion."""
        if self._store.version <= self._sent:
            return ()
        kind, version = self._watched.kind, str(self._store.version)
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"resourceVersion": version}}
        return (WatchEvent(type=EventType.BOOKMARK, body=body),)


def require_history(store: Store, kind: Kind, version: int) -> None:
    if version < (oldest := store.compacted(kind)):
        raise Gone(kind, f"too old resource version: {version} ({oldest})")


def _event(change: StoreChange, test: Test) -> WatchEvent | None:
    """The change as this selection sees it: an object that leaves it is DELETED, one that enters it is ADDED."""
    before = change.before is not None and test(change.before)
    after = change.after is not None and test(change.after)
    if after and change.after is not None:
        return WatchEvent(type=EventType.MODIFIED if before else EventType.ADDED, body=change.after)
    if before and change.before is not None:
        return WatchEvent(type=EventType.DELETED, body=_last_state(change.before, change.version))
    return None


def _last_state(body: Body, version: int) -> Body:
    return {**body, "metadata": {**body["metadata"], "resourceVersion": str(version)}}
