"""Answers from caches that watches keep up to date: once they are synced, a round sends no reads to the cluster.

There is one list-watch for each kind and namespace that is asked for, started on first use. An object that we have
written ourselves takes precedence over the cache until the watch delivers it, so a round never reads stale data of its
own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import Event, Lock

from reconcile.cluster.protocol import Cluster
from reconcile.objects import has_labels
from reconcile.observe.kind_watch import KindWatch, Pace
from reconcile.observe.seldom import SeldomLists
from reconcile.observe.selection import (
    is_whole,
    not_listed,
    read_by_name,
    selection_of,
    trimmed,
)
from reconcile.observe.source import under
from reconcile.probes.look import Group, ReadFailure
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, Kind, Ref, ref_of

_Key = tuple[str, str, str]


_THREADS = Pace()


class CachedSource:
    """A `Source` over list-watches. `changed` is called with each changed object, from a watch's thread."""

    def __init__(self, cluster: Cluster, kinds: Kinds, changed: Callable[[Ref], None], pace: Pace = _THREADS) -> None:
        self._pace = pace
        self._cluster = cluster
        self._kinds = kinds
        self._changed = changed
        self._lock = Lock()
        self._watches: dict[_Key, KindWatch] = {}
        self._held: dict[Ref, Body] = {}
        self._groups: dict[Group, _Known] = {}
        self._seldom = SeldomLists(cluster, kinds, pace.clock, self.watched)
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

    def watched(self, group: Group) -> tuple[Body, ...] | ReadFailure | None:
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

    def interruptions(self) -> Mapping[str, int]:
        """The number of times that watches were interrupted, by kind."""
        with self._lock:
            counted: dict[str, int] = {}
            for watch in self._watches.values():
                counted[watch.kind.kind] = counted.get(watch.kind.kind, 0) + watch.interruptions
            return counted

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

    def _watch(self, kind: Kind, namespace: str) -> KindWatch | None:
        """The watch that covers these objects, started if necessary; None if they are not watched."""
        named = (kind.api_version, kind.kind)
        with self._lock:
            if found := self._watches.get((*named, "")) or self._watches.get((*named, namespace)):
                return found
            selection = selection_of(kind, namespace)
            if selection is None:
                return None
            watch = KindWatch(self._cluster, selection, self._changed, self._stop, self._pace, self._held)
            self._watches[*named, namespace] = watch
            watch.start()
        return watch


class _Known:
    """A group's objects from a watch's copy, which hold until any object changes there: that is all that a round has to
    ask of what has not changed."""

    __slots__ = ("_change", "_watch", "answer")

    def __init__(self, watch: KindWatch, change: int, answer: tuple[Body, ...]) -> None:
        """`change` was the last one before the answer was looked up."""
        self._watch = watch
        self._change = change
        self.answer = answer

    @property
    def holds(self) -> bool:
        return self._watch.changes == self._change and self._watch.health.problem is None


def _keys_of(ref: Ref) -> tuple[_Key, _Key]:
    return (ref.api_version, ref.kind, ref.namespace), (ref.api_version, ref.kind, "")
