"""The objects of the embedded cluster, the history of their changes, and the lock over both.

One counter gives every change its resourceVersion, as etcd's revision does. Nothing is checked here, and a body is
never changed in place: a change puts another body in its place. Every method requires the lock to be held.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from threading import Condition, RLock
from typing import Any

from renderer.model.ref import Body, Kind, Ref

KindKey = tuple[str, str]
Key = tuple[str, str]

_HISTORY = 1_000
"""Changes of a kind that a watch can be given; it lists again when it has missed more."""
_FIRST_VERSION = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreChange:
    """One write. `before` is None for a new object, `after` None for one that is gone."""

    version: int
    kind: KindKey
    before: Body | None
    after: Body | None


def key_of(kind: Kind) -> KindKey:
    return kind.api_version, kind.kind


class Store:
    """Objects by kind, namespace and name, and by uid."""

    def __init__(self, observe: Callable[[StoreChange], None]) -> None:
        """`observe` is called with every change, with the lock held."""
        self._observe = observe
        self.lock = RLock()
        self.changed = Condition(self.lock)
        self.version = _FIRST_VERSION
        self._compacted = 0
        self._dropped: dict[KindKey, int] = {}
        self._objects: dict[KindKey, dict[Key, Body]] = {}
        self._by_uid: dict[str, tuple[KindKey, Key]] = {}
        self._presumed: frozenset[str] = frozenset()
        self._history: dict[KindKey, deque[StoreChange]] = {}
        self._changed_at: dict[KindKey, int] = {}
        self._numbers: dict[tuple[KindKey, Key], int] = {}
        self._dependents: dict[str, dict[tuple[KindKey, Key], None]] = {}
        self._gone: dict[str, None] = {}
        self._counted = 0
        self._deleting: dict[tuple[KindKey, Key], Body] = {}
        self._put: dict[tuple[KindKey, Key], Body] = {}

    def last_change(self, kind: Kind) -> int:
        """The version of the last change of the kind's objects; 0 before the first."""
        return self._changed_at.get(key_of(kind), 0)

    def get(self, kind: Kind, namespace: str, name: str) -> Body | None:
        return self._objects.get(key_of(kind), {}).get((namespace, name))

    def find(self, ref: Ref) -> Body | None:
        return self._objects.get((ref.api_version, ref.kind), {}).get((ref.namespace, ref.name))

    def knows(self, uid: str) -> bool:
        """True if an object with this uid is there, or is presumed to be outside of what was seeded."""
        return uid in self._by_uid or uid in self._presumed

    def all_of(self, kind: Kind, namespace: str = "") -> Iterator[Body]:
        """Ordered by namespace and name."""
        objects = self._objects.get(key_of(kind), {})
        for key in sorted(objects):
            if not namespace or key[0] == namespace:
                yield objects[key]

    def deleting(self) -> tuple[Body, ...]:
        """Every object that is being deleted."""
        return tuple(self._deleting.values())

    def take_new(self) -> tuple[Body, ...]:
        """The objects that were stored since this was last called, as they are now."""
        found = tuple(self._put.values())
        self._put.clear()
        return found

    def take_orphans(self) -> tuple[Body, ...] | None:
        """The objects of which an owner has gone since this was last called; None where nothing has gone."""
        gone, self._gone = self._gone, {}
        if not gone:
            return None
        places = {place for uid in gone for place in self._dependents.get(uid, ())}
        return tuple(self._objects[kind][key] for kind, key in places)

    def in_order(self, bodies: Iterable[Body]) -> tuple[Body, ...]:
        """Each once, in the order of `everything`."""
        places = {self._place(body): body for body in bodies}
        kinds = {kind: number for number, kind in enumerate(self._objects)}
        return tuple(places[it] for it in sorted(places, key=lambda place: (kinds[place[0]], self._numbers[place])))

    def everything(self) -> tuple[Body, ...]:
        return tuple(body for objects in self._objects.values() for body in objects.values())

    def put(self, body: Body) -> Body:
        """Stores the object under the next resourceVersion and notifies the watches."""
        self.version += 1
        stored = {**body, "metadata": {**body["metadata"], "resourceVersion": str(self.version)}}
        kind, key = self._place(stored)
        before = self._objects.setdefault(kind, {}).get(key)
        self._objects[kind][key] = stored
        self._index(kind, key, before, stored)
        self._by_uid[stored["metadata"]["uid"]] = kind, key
        self._note(kind, key, stored)
        self._record(StoreChange(version=self.version, kind=kind, before=before, after=stored))
        return stored

    def remove(self, body: Body) -> Body:
        """Removes the object; its last state, with the resourceVersion of the removal, is what watches see."""
        kind, key = self._place(body)
        before = self._objects[kind].pop(key)
        self._by_uid.pop(before["metadata"]["uid"], None)
        self._put.pop((kind, key), None)
        self._deleting.pop((kind, key), None)
        self._gone[before["metadata"]["uid"]] = None
        self._index(kind, key, before, None)
        self.version += 1
        self._record(StoreChange(version=self.version, kind=kind, before=before, after=None))
        return before

    def put_as_is(self, bodies: Iterable[Body]) -> None:
        """Stores objects that bring their own resourceVersions, without history: what was before anybody watched.

        Owners that they name and that are not there are presumed to live outside: nothing is collected for them.
        """
        owners: set[str] = set()
        for body in bodies:
            kind, key = self._place(body)
            self._index(kind, key, self._objects.setdefault(kind, {}).get(key), body)
            self._objects[kind][key] = body
            self._by_uid[body["metadata"]["uid"]] = kind, key
            self._note(kind, key, body)
            owners.update(owner["uid"] for owner in body["metadata"].get("ownerReferences") or ())
        self._presumed |= owners - set(self._by_uid)

    def raise_version(self, version: int) -> None:
        """Nothing before the version can be watched any more."""
        self.version = max(self.version, version)
        self.compact()

    def compact(self) -> None:
        """Forgets all history: a watch from before now gets Gone."""
        self._compacted = self.version
        self._history.clear()
        self.changed.notify_all()

    def compacted(self, kind: Kind) -> int:
        """The version from which on all changes of the kind are known."""
        return max(self._compacted, self._dropped.get(key_of(kind), 0))

    def since(self, kind: Kind, version: int) -> tuple[StoreChange, ...]:
        """The changes of a kind after a version that is not compacted."""
        found: list[StoreChange] = []
        for change in reversed(self._history.get(key_of(kind), ())):
            if change.version <= version:
                break
            found.append(change)
        return tuple(reversed(found))

    def changes_of(self, kind: Kind, version: int) -> tuple[tuple[Body | None, Body | None], ...] | None:
        """The objects of a kind that have changed since a version, before and after each change; None where that is
        not known any more."""
        if version < self.compacted(kind):
            return None
        return tuple((change.before, change.after) for change in self.since(kind, version))

    def _note(self, kind: KindKey, key: Key, body: Body) -> None:
        self._put[kind, key] = body
        if body["metadata"].get("deletionTimestamp"):
            self._deleting[kind, key] = body
        else:
            self._deleting.pop((kind, key), None)

    def _index(self, kind: KindKey, key: Key, before: Body | None, after: Body | None) -> None:
        """Keeps the order in which objects came, and who depends on whom."""
        place = kind, key
        if before is None:
            self._numbers[place] = self._counted = self._counted + 1
        if after is None:
            del self._numbers[place]
        then, now = _owners(before), _owners(after)
        if then == now:
            return
        for uid in then:
            self._dependents[uid].pop(place, None)
            if not self._dependents[uid]:
                del self._dependents[uid]
        for uid in now:
            self._dependents.setdefault(uid, {})[place] = None

    def _place(self, body: Body) -> tuple[KindKey, Key]:
        metadata: dict[str, Any] = body["metadata"]
        return (body["apiVersion"], body["kind"]), (metadata.get("namespace") or "", metadata["name"])

    def _record(self, change: StoreChange) -> None:
        self._changed_at[change.kind] = change.version
        history = self._history.setdefault(change.kind, deque())
        history.append(change)
        if len(history) > _HISTORY:
            self._dropped[change.kind] = history.popleft().version
        self.changed.notify_all()
        self._observe(change)


def _owners(body: Body | None) -> tuple[str, ...]:
    """The uids of its owners, each once."""
    owners = body["metadata"].get("ownerReferences") if body else None
    return tuple(dict.fromkeys(owner["uid"] for owner in owners)) if owners else ()
