"""Keeps a copy of a selection's objects up to date and reports every change, with backoff through any outage.

Works over the Protocol, so on the embedded cluster too. It decides nothing and writes nothing. Why not the official
informer: it repeats without a pause while the server is down, asks for no bookmarks and reads no pages.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from reconcile.cluster.errors import Away, ClusterError, Forbidden, Gone, NoSuchKind, Throttled
from reconcile.cluster.protocol import Cluster, EventType, Keep, Listing, Selection, WatchEvent, Window
from renderer.model.ref import Body, Ref, ref_of

WINDOW = 290
"""Seconds of a watch at the server: below the 5 minutes after which many load balancers cut."""
FLOOR = 0.2
"""The least number of seconds between two windows."""
CEILING = 30.0
"""The greatest number of seconds between two attempts; a longer Retry-After is honoured."""
CEILING_AWAY = 3.0
"""The same while the API server is away, so that the loop continues within 5 seconds of its return."""

_SHORT = 1.0  # a window that ends sooner without an event does not count
_DOUBLINGS = 5  # 1 s doubled five times is past the ceiling


class Deliver(Protocol):
    """Takes one change: ADDED, MODIFIED or DELETED. It should return at once, since the watch waits for it."""

    def __call__(self, event: WatchEvent) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The state of a list-watch.

    `synced`: the first list is complete. `served` False: the cluster has no such kind, and the copy is empty.
    `problem` is what fails now and `since` when that began, on the given clock; both None while all is well.
    """

    synced: bool = False
    served: bool = True
    problem: ClusterError | None = None
    since: float | None = None

    @property
    def away_since(self) -> float | None:
        """The time since when the API server does not answer; None while it does, even if it refuses."""
        return self.since if isinstance(self.problem, Away) else None


class ListWatch:
    """One selection, watched. `cycle` and `run` belong to one thread; `health`, `objects` and `stop` to any.

    `clock` is monotonic and in seconds; `random` gives [0, 1). `trim` may cut an object down before it is kept; of a
    list it does so page by page, since all of it at once may be most of what a process ever needs.
    """

    def __init__(
        self,
        cluster: Cluster,
        selection: Selection,
        deliver: Deliver,
        *,
        clock: Callable[[], float],
        random: Callable[[], float],
        window: int = WINDOW,
        trim: Callable[[Body], Body] = lambda body: body,
    ) -> None:
        self.selection = selection
        self.health = Health()
        self.interruptions = 0
        """The number of cycles that ended in an error, or with history lost."""
        self._cluster = cluster
        self._deliver = deliver
        self._clock = clock
        self._random = random
        self._seconds = window
        self._trim = trim
        self._objects: dict[Ref, Body] = {}
        self._resource_version = ""
        self._failures = 0
        self._window: Window | None = None
        self._stopped = False

    def objects(self) -> tuple[Body, ...]:
        """The copy as it is now."""
        return tuple(self._objects.copy().values())

    def find(self, ref: Ref) -> Body | None:
        """One object of the copy."""
        return self._objects.get(ref)

    @property
    def follows(self) -> bool:
        """True if the last cycle succeeded: the next one continues where it ended."""
        return bool(self._resource_version) and self.health.problem is None

    def run(self, sleep: Callable[[float], object]) -> None:
        """Works until `stop`. Give it the `wait` of an Event that is set before `stop`, and it ends promptly."""
        while not self._stopped:
            sleep(self.cycle())

    def stop(self) -> None:
        """Ends the open window; `run` returns after it."""
        self._stopped = True
        if self._window is not None:
            self._window.close()

    def cycle(self) -> float:
        """One list, or one window of the watch. Returns the seconds to wait before the next. Raises no
        `ClusterError`."""
        try:
            return self._watch() if self._resource_version else self._list()
        except NoSuchKind:
            return self._unserved()
        except Gone:
            self._resource_version = ""
            self.interruptions += 1
            return self._pause()
        except Throttled as error:
            return max(error.retry_after, self._failed(error))
        except ClusterError as error:
            return self._failed(error)

    def _list(self) -> float:
        listing = self._cluster.list(self.selection, Keep(trim=self._trim))
        self._well(served=True)
        self._replace(listing)
        self._resource_version = listing.resource_version
        self.health = replace(self.health, synced=True)
        return 0.0

    def _watch(self) -> float:
        opened = self._clock()
        window = self._cluster.watch(self.selection, resource_version=self._resource_version, window=self._seconds)
        self._well(served=True)
        self._window = window
        if self._stopped:  # `stop` came before it could see this window
            window.close()
        brought = self._consume(window)
        if not brought and self._clock() - opened < min(_SHORT, self._seconds):
            return self._pause()
        self._failures = 0
        return FLOOR

    def _consume(self, window: Window) -> bool:
        """True if it brought anything, be it a bookmark. A cut after that is how many a window ends, and no outage."""
        brought = False
        try:
            for event in window:
                brought = self._advance(event) or brought
        except Away:
            if not brought:
                raise
        return brought

    def _advance(self, event: WatchEvent) -> bool:
        version = _version(event.body)
        news, self._resource_version = version != self._resource_version, version
        if event.type is not EventType.BOOKMARK:
            self._take(WatchEvent(type=event.type, body=self._trim(event.body)))
        return news

    def _take(self, event: WatchEvent) -> None:
        ref = ref_of(event.body)
        known = self._objects.get(ref)
        if event.type is EventType.DELETED:
            self._objects.pop(ref, None)
        elif known is not None and _version(known) == _version(event.body):
            return  # a resume may repeat what a list has brought
        else:
            self._objects[ref] = event.body
        self._deliver(event)

    def _replace(self, listing: Listing) -> None:
        """Reports the differences between the copy and a new list: no event will come for them any more."""
        now = {ref_of(body): body for body in listing.items}
        for ref, body in tuple(self._objects.items()):
            if ref not in now or _uid(now[ref]) != _uid(body):
                self._take(WatchEvent(type=EventType.DELETED, body=body))
        for ref, body in now.items():
            kind = EventType.MODIFIED if ref in self._objects else EventType.ADDED
            self._take(WatchEvent(type=kind, body=body))

    def _unserved(self) -> float:
        """An absent kind has no objects; its CRD may come during an upgrade, so ask again now and then."""
        self._well(served=False)
        self._replace(Listing(items=(), resource_version=""))
        self._resource_version = ""
        self.health = replace(self.health, synced=True)
        return CEILING * (0.5 + self._random() / 2)

    def _well(self, *, served: bool) -> None:
        self.health = Health(synced=self.health.synced, served=served)

    def _failed(self, error: ClusterError) -> float:
        self.interruptions += 1
        before = self.health.problem
        since = self.health.since if type(error) is type(before) else self._clock()
        if isinstance(before, Away) and isinstance(error, (Forbidden, Throttled)):
            self._failures = 0  # it is back; until it knows who may do what, it refuses or throttles for a moment
        self.health = replace(self.health, problem=error, since=since)
        return self._pause(CEILING_AWAY if isinstance(error, Away) else CEILING)

    def _pause(self, ceiling: float = CEILING) -> float:
        """Exponential with full jitter, so that many clients do not come back at once."""
        reach = min(ceiling, 2.0 ** min(self._failures, _DOUBLINGS))
        self._failures += 1
        return max(FLOOR, self._random() * reach)


def _version(body: Body) -> str:
    return str(body["metadata"].get("resourceVersion"))


def _uid(body: Body) -> str:
    return str(body["metadata"].get("uid"))
