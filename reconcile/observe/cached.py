"""Answers from caches that watches keep up to date: once they are synced, a round sends no reads to the cluster.

There is one list-watch for each kind and namespace that is asked for, started on first use. An object that we have
written ourselves takes precedence over the cache until the watch delivers it, so a round never reads stale data of its
own.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from threading import Event, Lock, Thread
from typing import Protocol

from reconcile.cluster.errors import Away
from reconcile.cluster.listwatch import WINDOW, Health, ListWatch
from reconcile.cluster.protocol import Cluster, EventType, Selection, WatchEvent
from reconcile.objects import has_labels
from reconcile.observe.seldom import SeldomLists
from reconcile.observe.selection import (
    is_whole,
    misshapen,
    not_listed,
    read_by_name,
    read_failures,
    selection_of,
    trimmed,
)
from reconcile.observe.source import under
from reconcile.probes.look import Group, ReadFailure
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, Kind, Ref, ref_of
from renderer.model.sharing import shared

_FIRST_SYNC = 20.0
"""Seconds that the first read waits for its watch to sync; after that it is a read failure."""

_Key = tuple[str, str, str]


class Watch(Protocol):
    """A watch whose turns somebody else gives it."""

    @property
    def kind(self) -> Kind: ...

    @property
    def follows(self) -> bool:
        """True if its last turn went well."""
        ...

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


_THREADS = Pace()


class CachedSource:
    """A `Source` over list-watches. `changed` is called with each changed object, from a watch's thread."""

    def __init__(self, cluster: Cluster, kinds: Kinds, changed: Callable[[Ref], None], pace: Pace = _THREADS) -> None:
        self._pace = pace
        self._cluster = cluster
        self._kinds = kinds
        self._changed = changed
        self._lock = Lock()
        self._watches: dict[_Key, _Watch] = {}
        self._held: dict[Ref, Body] = {}
        self._groups: dict[Group, _Known] = {}
        self._seldom = SeldomLists(cluster, kinds, pace.clock, self._watched)
        self._stop = Event()

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        if (held := self.held().get(ref)) is not None:
            return held
        for kind in self._kinds.served_as(ref.api_version, ref.kind):
            if (found := self._get(kind, under(kind, ref))) is not None:
                return found
        return None

    def held(self) -> Mapping[Ref, Body]:
        """The objects that were asked for and have not changed since; none while a watch has a problem to tell."""
        with self._lock:
            return {} if any(watch.health.problem for watch in self._watches.values()) else self._held

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        if group.seldom:
            return self._seldom.list(group)
        self._seldom.let_go()
        known = self._groups.get(group)
        if known is not None and known.holds:
            return known.answer
        for kind in self._kinds.served_as(group.api_version, group.kind):
            found = self._list(kind, group)
            if isinstance(found, ReadFailure) or found:
                return found
        return ()

    def note(self, body: Body) -> None:
        ref = ref_of(body)
        with self._lock:
            watches = [w for key, w in self._watches.items() if key in _keys_of(ref)]
        for watch in watches:
            if is_whole(watch.kind) or watch.find(ref) is not None:  # what it does not list, it would never bring
                watch.note(ref, trimmed(body))

    @property
    def synced(self) -> bool:
        """True if every watch has its first list."""
        with self._lock:
            return all(watch.health.synced or not watch.health.served for watch in self._watches.values())

    def stop(self) -> None:
        """Stops the watches and waits for their threads."""
        self._stop.set()
        with self._lock:
            watches = list(self._watches.values())
        for watch in watches:
            watch.stop()

    def _get(self, kind: Kind, ref: Ref) -> Body | ReadFailure | None:
        """From the cache; from the cluster itself if the object may exist although it is not cached."""
        if (watch := self._watch(kind, ref.namespace)) is not None:
            failed = watch.ready() or watch.misshapen(ref)
            if failed is not None:
                return failed
            found = watch.find(ref)
            if found is not None or is_whole(kind):
                return found
        return read_by_name(self._cluster, kind, ref)

    def _watched(self, group: Group) -> tuple[Body, ...] | ReadFailure | None:
        """None where no watch brings all objects of the group."""
        whole = replace(group, name="", seldom=False)
        for kind in self._kinds.served_as(group.api_version, group.kind):
            if not is_whole(kind) or not self._has_watch(kind, group.namespace):
                return None
            found = self._list(kind, whole)
            if isinstance(found, ReadFailure):
                return found
            if found:
                return tuple(body for body in found if ref_of(body).name == group.name) if group.name else found
        return ()

    def _has_watch(self, kind: Kind, namespace: str) -> bool:
        named = (kind.api_version, kind.kind)
        with self._lock:
            return (*named, "") in self._watches or (*named, namespace) in self._watches

    def _list(self, kind: Kind, group: Group) -> tuple[Body, ...] | ReadFailure:
        watch = self._watch(kind, group.namespace)
        if watch is None:
            return not_listed(kind)
        change, failed = watch.changes, watch.ready() or watch.misshapen()
        if failed:
            return failed
        found = watch.all()
        if group.labels:
            found = tuple(body for body in found if has_labels(body, group.labels))
        if found and kind.api_version == group.api_version:
            self._groups[group] = _Known(watch, change, found)
        return found

    def _watch(self, kind: Kind, namespace: str) -> _Watch | None:
        """The watch that covers these objects, started if necessary; None if they are not watched."""
        named = (kind.api_version, kind.kind)
        with self._lock:
            if found := self._watches.get((*named, "")) or self._watches.get((*named, namespace)):
                return found
            selection = selection_of(kind, namespace)
            if selection is None:
                return None
            watch = _Watch(self._cluster, selection, self._changed, self._stop, self._pace, self._held)
            self._watches[*named, namespace] = watch
            watch.start()
        return watch


class _Known:
    """A group's objects from a watch's copy, which hold until any object changes there: that is all that a round has to
    ask of what has not changed."""

    __slots__ = ("_change", "_watch", "answer")

    def __init__(self, watch: _Watch, change: int, answer: tuple[Body, ...]) -> None:
        """`change` was the last one before the answer was looked up."""
        self._watch = watch
        self._change = change
        self.answer = answer

    @property
    def holds(self) -> bool:
        return self._watch.changes == self._change and self._watch.health.problem is None


class _Watch:
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
                self._written[ref] = body
                self._count(ref)

    def _slim(self, body: Body) -> Body:
        """Objects of one kind and namespace are alike, and share their equal parts."""
        self._judge(body)
        self._last = shared(trimmed(body), self._last)
        return self._last

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


def _keys_of(ref: Ref) -> tuple[_Key, _Key]:
    return (ref.api_version, ref.kind, ref.namespace), (ref.api_version, ref.kind, "")


def _version(body: Body) -> int:
    """Kubernetes 1.35 makes resourceVersions of one kind comparable (KEP-5504)."""
    text = str((body.get("metadata") or {}).get("resourceVersion") or "0")
    return int(text) if text.isdigit() else 0
