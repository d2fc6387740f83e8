"""One list-watch of a kind, in a thread of its own or by turns, and our own writes that it has not delivered yet."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Protocol

from reconcile.cluster.errors import Away
from reconcile.cluster.listwatch import WINDOW, Health, ListWatch
from reconcile.cluster.protocol import Cluster, EventType, Selection, WatchEvent
from reconcile.observe.selection import (
    misshapen,
    read_failures,
    trimmed,
)
from reconcile.probes.look import ReadFailure
from renderer.model.ref import Body, Kind, Ref, ref_of
from renderer.model.sharing import shared

_FIRST_SYNC = 20.0
"""Seconds that the first read waits for its watch to sync; after that it is a read failure."""


class Watch(Protocol):
    """A watch whose turns somebody else gives it."""

    @property
    def kind(self) -> Kind: ...

    @property
    def follows(self) -> bool:
        """True if its last turn went well."""
        ...

    @property
    def health(self) -> Health: ...

    def turn(self) -> float:
        """Lists, or takes what has changed since; the seconds after which it has to again."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The schedule of the watches' turns. `clock` is monotonic, `random` gives [0, 1), `window` are a watch's seconds
    at the server. `begin` is given each new watch; without it each has a thread of its own, and the time it needs.
    `shares`: what comes over the network shares its equal parts; what is in memory already need not be copied for
    that."""

    clock: Callable[[], float] = time.monotonic
    random: Callable[[], float] = random.random
    window: int = WINDOW
    begin: Callable[[Watch], None] | None = None
    shares: bool = True


class KindWatch:
    """One list-watch in a thread of its own, and our own writes that it has not delivered yet."""

    def __init__(
        self,
        cluster: Cluster,
        selection: Selection,
        changed: Callable[[Ref], None],
        stopped: Event,
        pace: Pace,
        held: dict[Ref, Body],
    ) -> None:
        """`held` are the answers of all watches: each is there from when it is asked for until its object changes."""
        self.changes = 0
        self._held = held
        self._pace = pace
        self._lock = Lock()
        self._written: dict[Ref, Body] = {}
        self._misshapen: dict[Ref, ReadFailure] = {}
        self._brought = 0
        self._last: Body = {}
        self._stopped = stopped
        self._reported = changed
        self._in_step = Event()
        self._copy = ListWatch(
            cluster,
            selection,
            self._deliver,
            clock=pace.clock,
            random=pace.random,
            window=pace.window,
            trim=self._slim if pace.shares else trimmed,
        )
        self._thread = Thread(target=self._run, name=f"watch {selection}", daemon=True)

    @property
    def health(self) -> Health:
        return self._copy.health

    @property
    def interruptions(self) -> int:
        """See `ListWatch.interruptions`."""
        return self._copy.interruptions

    @property
    def kind(self) -> Kind:
        return self._copy.selection.kind

    @property
    def follows(self) -> bool:
        return self._copy.follows

    def turn(self) -> float:
        pause = self._copy.cycle()
        if self.health.synced or not self.health.served or self.health.problem:
            self._in_step.set()
        return pause

    def start(self) -> None:
        if self._pace.begin is not None:
            self._pace.begin(self)
        else:
            self._thread.start()

    def stop(self) -> None:
        self._copy.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def ready(self) -> ReadFailure | None:
        """Waits for the first list. Raises `Away` while the API server is away; any other problem is a read failure."""
        if not self._in_step.wait(_FIRST_SYNC) and not self.health.problem:
            return ReadFailure(why=f"{self._copy.selection} has not been listed yet")
        problem = self.health.problem
        if isinstance(problem, Away):
            raise problem
        return read_failures(problem) if problem is not None else None

    def _count(self, ref: Ref) -> None:
        """Counts a change that the copy, or what we have written, has already. With the lock held."""
        self.changes += 1
        self._held.pop(ref, None)

    def misshapen(self, ref: Ref | None = None) -> ReadFailure | None:
        """The object of another shape than its kind has; without a ref any one of the kind."""
        return self._misshapen.get(ref) if ref else next(iter(list(self._misshapen.values())), None)

    def find(self, ref: Ref) -> Body | None:
        with self._lock:
            found, written = self._copy.find(ref), self._written.get(ref)
            if found is None or (written is not None and _version(found) < _version(written)):
                found = written
            if found is not None:
                self._held[ref] = found
        return found

    def all(self) -> tuple[Body, ...]:
        with self._lock:
            if not self._written:
                return self._copy.objects()
            merged = {ref_of(body): body for body in self._copy.objects()}
            for ref, body in list(self._written.items()):
                if ref in merged and _version(merged[ref]) >= _version(body):
                    del self._written[ref]
                else:
                    merged[ref] = body
            return tuple(merged.values())

    def note(self, ref: Ref, body: Body) -> None:
        """The response to a write may come after the watch has delivered that change and later ones, even deletion."""
        with self._lock:
            if _version(body) > self._brought:
                self._written[ref] = shared(body, self._known(ref)) if self._pace.shares else body
                self._count(ref)

    def _slim(self, body: Body) -> Body:
        """An object shares with the one that it was what has not changed, and a new one what is equal in another of its
        kind and namespace."""
        self._judge(body)
        self._last = shared(trimmed(body), self._known(ref_of(body)))
        return self._last

    def _known(self, ref: Ref) -> Body:
        return self._written.get(ref) or self._copy.find(ref) or self._last

    def _judge(self, body: Body) -> None:
        """Once for each state of an object, when it arrives."""
        found = misshapen(body)
        if found is not None:
            self._misshapen[ref_of(body)] = found
        elif self._misshapen:
            self._misshapen.pop(ref_of(body), None)

    def _run(self) -> None:
        while not self._stopped.is_set():
            self._stopped.wait(self.turn())

    def _deliver(self, event: WatchEvent) -> None:
        """Our own last write of the object is not reported as a change."""
        ref, version = ref_of(event.body), _version(event.body)
        with self._lock:
            self._brought = max(self._brought, version)
            written = _version(self._written.get(ref) or {})
            if written and version >= written:
                del self._written[ref]
            self._count(ref)
        if event.type is EventType.DELETED:
            self._misshapen.pop(ref, None)
        if version != written or event.type is EventType.DELETED:
            self._reported(ref)


def _version(body: Body) -> int:
    """Kubernetes 1.35 makes resourceVersions of one kind comparable (KEP-5504)."""
    text = str((body.get("metadata") or {}).get("resourceVersion") or "0")
    return int(text) if text.isdigit() else 0
