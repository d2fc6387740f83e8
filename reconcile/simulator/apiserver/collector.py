"""The garbage collector and the namespace controller: they delete objects whose owner or namespace is gone.

`collect` runs until nothing is left to do; only tests and rehearsals call it, so that they decide when it happens.
Source: k8s.io/kubernetes, pkg/controller/garbagecollector.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconcile.cluster.protocol import Propagation
from reconcile.simulator.apiserver.clock import Clock
from reconcile.simulator.apiserver.deletion import FOREGROUND, ORPHAN, DeleteOptions, Deletions
from reconcile.simulator.apiserver.store import Store
from reconcile.simulator.apiserver.write_handlers import Writes
from reconcile.status.times import time_text
from renderer.model.ref import Body, ref_of


class Collector:
    """Collects by owner reference, finishes deletions, empties namespaces, and ends pods whose grace is over."""

    def __init__(self, store: Store, writes: Writes, deletions: Deletions, clock: Clock) -> None:
        self._store = store
        self._writes = writes
        self._deletions = deletions
        self._clock = clock

    def collect(self) -> int:
        """Collects once; returns the number of objects that went or were marked."""
        done = 0
        with self._store.lock:
            while went := self._round():
                done += went
        return done

    def _round(self) -> int:
        """Every object, once, that may have to be deleted; one may follow another that was deleted in the same
        round."""
        return sum(self._handle(body) for body in self._candidates())

    def _candidates(self) -> tuple[Body, ...]:
        """The objects that are being deleted, the new ones, and those of which an owner is gone."""
        found, orphans = (*self._store.deleting(), *self._store.take_new()), self._store.take_orphans()
        if orphans is None:
            return tuple({id(body): body for body in found}.values())
        return self._store.in_order((*found, *orphans))

    def _handle(self, body: Body) -> bool:
        metadata = body["metadata"]
        if not (metadata.get("deletionTimestamp") or metadata.get("ownerReferences")):
            return False
        if self._store.find(ref_of(body)) is not body:
            return False
        if metadata.get("deletionTimestamp"):
            return self._finish(body, metadata)
        return bool(metadata.get("ownerReferences")) and self._follow(body, metadata["ownerReferences"])

    def _finish(self, body: Body, metadata: dict[str, Any]) -> bool:
        finalizers = metadata.get("finalizers") or ()
        if ORPHAN in finalizers:
            return self._orphan(body, self._store.everything())
        if FOREGROUND in finalizers:
            return self._delete_dependants_first(body, self._store.everything())
        if body["kind"] == "Namespace" and (body.get("spec") or {}).get("finalizers"):
            return self._empty(body, self._store.everything())
        if metadata.get("deletionGracePeriodSeconds") and metadata["deletionTimestamp"] <= time_text(self._clock.now()):
            self._writes.put_changed(body, _with(body, deletionGracePeriodSeconds=0))
            return True
        return False

    def _follow(self, body: Body, owners: list[dict[str, Any]]) -> bool:
        """An object without any owner left is deleted; if only some are gone, their references are removed."""
        left = [owner for owner in owners if self._store.knows(owner["uid"])]
        if len(left) == len(owners):
            return False
        if left:
            self._writes.control(body, _with(body, ownerReferences=left))
        else:
            self._deletions.delete(ref_of(body), DeleteOptions(uid=body["metadata"]["uid"]))
        return True

    def _orphan(self, body: Body, everything: Iterable[Body]) -> bool:
        uid = body["metadata"]["uid"]
        for dependant in _dependants(uid, everything):
            left = [owner for owner in dependant["metadata"]["ownerReferences"] if owner["uid"] != uid]
            self._writes.control(dependant, _with(dependant, ownerReferences=left))
        self._release(body, ORPHAN)
        return True

    def _delete_dependants_first(self, body: Body, everything: Iterable[Body]) -> bool:
        """Dependents that block are deleted first; the owner follows when none is left."""
        uid = body["metadata"]["uid"]
        left = [found for item in _dependants(uid, everything) if (found := self._store.find(ref_of(item))) is not None]
        waiting = [item for item in left if not item["metadata"].get("deletionTimestamp")]
        for item in waiting:
            self._deletions.delete(ref_of(item), DeleteOptions(propagation=Propagation.FOREGROUND))
        if not any(_blocks(item, uid) and self._store.find(ref_of(item)) for item in left):
            self._release(body, FOREGROUND)
            return True
        return bool(waiting)

    def _empty(self, namespace: Body, everything: Iterable[Body]) -> bool:
        """Deletes what is in the namespace; the namespace is removed when it is empty."""
        name = namespace["metadata"]["name"]
        inside = [body for body in everything if body["metadata"].get("namespace") == name]
        left = [body for item in inside if (body := self._store.find(ref_of(item))) is not None]
        waiting = [item for item in left if not item["metadata"].get("deletionTimestamp")]
        for item in waiting:
            self._deletions.delete(ref_of(item), DeleteOptions())
        if not any(self._store.find(ref_of(item)) for item in left):
            self._writes.control(namespace, {**namespace, "spec": {**namespace["spec"], "finalizers": []}})
            return True
        return bool(waiting)

    def _release(self, body: Body, finalizer: str) -> None:
        live = self._store.find(ref_of(body)) or body
        left = [name for name in live["metadata"]["finalizers"] if name != finalizer]
        self._writes.control(live, _with(live, finalizers=left))


def _dependants(uid: str, everything: Iterable[Body]) -> list[Body]:
    return [
        body
        for body in everything
        if any(owner["uid"] == uid for owner in body["metadata"].get("ownerReferences") or ())
    ]


def _blocks(body: Body, uid: str) -> bool:
    owners = body["metadata"].get("ownerReferences") or ()
    return any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in owners)


def _with(body: Body, **changed: Any) -> dict[str, Any]:
    """The object with fields of its metadata changed; an empty list is removed."""
    metadata = {**body["metadata"], **changed}
    return {**body, "metadata": {name: value for name, value in metadata.items() if value != []}}
