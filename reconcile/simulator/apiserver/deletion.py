"""Deleting one object: preconditions, finalizers, grace, and what happens to its dependents.

Source: k8s.io/apiserver, package registry/generic/registry, and the pod strategy for grace.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from reconcile.cluster.errors import Conflict, NotFound
from reconcile.cluster.protocol import Propagation
from reconcile.simulator.apiserver.clock import Clock
from reconcile.simulator.apiserver.store import Store
from reconcile.simulator.apiserver.write_handlers import Writes
from reconcile.status.times import time_text
from renderer.model.ref import Body, Ref

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_FINALIZER = {Propagation.ORPHAN: ORPHAN, Propagation.FOREGROUND: FOREGROUND}
_ENDED = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """The options of a deletion; empty preconditions always hold."""

    uid: str = ""
    resource_version: str = ""
    propagation: Propagation = Propagation.BACKGROUND
    dry_run: bool = False


class Deletions:
    """The part of the server that deletes objects."""

    def __init__(self, store: Store, writes: Writes, clock: Clock) -> None:
        self._store = store
        self._writes = writes
        self._clock = clock

    def delete(self, ref: Ref, deletion: DeleteOptions) -> Body:
        """The object with its deletionTimestamp if it stays for now, empty if it is gone."""
        with self._store.lock:
            live = self._store.find(ref)
            if live is None:
                raise NotFound(ref)
            _require(ref, live, deletion)
            return self._delete(live, deletion)

    def _delete(self, live: Body, deletion: DeleteOptions) -> Body:
        marked = self._marked(live, deletion.propagation)
        if marked is None:
            if not deletion.dry_run:
                self._store.remove(live)
            return {}
        if marked == live or deletion.dry_run:
            return marked
        return self._writes.put_changed(live, marked)

    def _marked(self, live: Body, propagation: Propagation) -> Body | None:
        """The object while finalizers or a grace period keep it; None if nothing does."""
        finalizers = _finalizers(live, propagation)
        grace = _grace(live)
        held_by_kind = live["kind"] == "Namespace" and (live.get("spec") or {}).get("finalizers")
        if not (finalizers or grace or held_by_kind):
            return None
        metadata = {**live["metadata"], "finalizers": finalizers}
        if not finalizers:
            del metadata["finalizers"]
        if not metadata.get("deletionTimestamp"):
            metadata |= self._marks(live, grace)
            if held_by_kind:
                del metadata["deletionGracePeriodSeconds"]
        marked = {**live, "metadata": metadata}
        return {**marked, "status": {**(live.get("status") or {}), "phase": "Terminating"}} if held_by_kind else marked

    def _marks(self, live: Body, grace: int) -> dict[str, Any]:
        """The first mark counts as a change of the desired state, so the generation rises."""
        generation = live["metadata"].get("generation")
        marks: dict[str, Any] = {
            "deletionTimestamp": time_text(self._clock.now() + timedelta(seconds=grace)),
            "deletionGracePeriodSeconds": grace,
        }
        return marks | {"generation": generation + 1} if generation else marks


def _require(ref: Ref, live: Body, deletion: DeleteOptions) -> None:
    for what, expected in (("uid", deletion.uid), ("resourceVersion", deletion.resource_version)):
        found = live["metadata"].get(what)
        if expected and expected != found:
            raise Conflict(
                ref, f"the {what} in the precondition ({expected}) does not match the one in record ({found})"
            )


def _finalizers(live: Body, propagation: Propagation) -> list[str]:
    kept = [name for name in live["metadata"].get("finalizers") or () if name not in (ORPHAN, FOREGROUND)]
    own = _FINALIZER.get(propagation)
    return [*kept, own] if own else kept


def _grace(live: Body) -> int:
    """Only a pod that runs on a node has a grace period; the kubelet reports its end."""
    if live["kind"] != "Pod" or live["apiVersion"] != "v1":
        return 0
    placed = (live.get("spec") or {}).get("nodeName") and (live.get("status") or {}).get("phase") not in _ENDED
    return int(live["spec"].get("terminationGracePeriodSeconds", 30)) if placed else 0
