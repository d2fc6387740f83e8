"""Create, apply and patch, as the API server carries them out: decode, own, prepare, validate, store.

Each answers with the object as it is then, or as it would be after a dry run. Who may do it, faults and logs are not
known here. Source of the order: k8s.io/apiserver, packages endpoints/handlers and registry/generic.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from reconcile.cluster.errors import (
    AlreadyExists,
    Claim,
    Conflict,
    Denied,
    Invalid,
    NotFound,
    ServerFailed,
    StatusCause,
)
from reconcile.cluster.refusal import invalid
from reconcile.simulator.apiserver.cel_rules import UncheckedRule
from reconcile.simulator.apiserver.clock import Clock
from reconcile.simulator.apiserver.field_set import path_text
from reconcile.simulator.apiserver.managed_fields import (
    FieldWriter,
    after_apply,
    after_update,
    claims_of,
    same_but_times,
    with_claims,
    without,
)
from reconcile.simulator.apiserver.metadata_rules import changed_for_good
from reconcile.simulator.apiserver.ownership import ApplyConflictError
from reconcile.simulator.apiserver.patches import PatchError, json_patched, merge_patched
from reconcile.simulator.apiserver.registry import Registry
from reconcile.simulator.apiserver.served_kinds import Origin, ServedKind
from reconcile.simulator.apiserver.store import Store
from reconcile.simulator.apiserver.walk import ShapeError, check
from reconcile.status.times import time_text
from renderer.model.ref import Body, Ref, ref_of

CONTROLLER = "kube-controller-manager"

_NAMESPACE = "v1", "Namespace"
_SERVERS_OWN = (
    "resourceVersion",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_KEPT = ("generation", "uid", "creationTimestamp", "selfLink", "deletionTimestamp", "deletionGracePeriodSeconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """The options of a write."""

    manager: str
    subresource: str = ""
    dry_run: bool = False
    force: bool = False


class Writes:
    """The part of the server that writes objects. The store's lock is taken for each write as a whole."""

    def __init__(self, store: Store, registry: Registry, clock: Clock) -> None:
        self._store = store
        self._registry = registry
        self._clock = clock
        self._made = 0
        self._unchecked: dict[str, dict[UncheckedRule, None]] = {}

    def create(self, served: ServedKind, body: Body, write: Write) -> Body:
        ref = ref_of(body)
        with self._store.lock:
            self._require_namespace(ref)
            self._decode(served, body)
            if body["metadata"].get("resourceVersion"):
                raise ServerFailed("resourceVersion should not be set on objects to be created")
            new = self._read(served, _wiped(body))
            writer = self._writer(served, write)
            return self._create(served, after_update(served.shape, served.strategy.blank(), new, writer), write)

    def apply(self, served: ServedKind, body: Body, write: Write) -> Body:
        ref = ref_of(body)
        with self._store.lock:
            live = self._store.find(ref)
            if live is None:
                self._require_namespace(ref)
            self._check_config(served, body, live)
            new = self._merged(served, live, body, write)
            return self._create(served, new, write) if live is None else self._update(served, live, new, write)

    def patch(self, served: ServedKind, ref: Ref, patch: Body, write: Write) -> Body:
        return self._change(served, ref, write, lambda live: merge_patched(live, patch))

    def json_patch(self, served: ServedKind, ref: Ref, operations: Sequence[Body], write: Write) -> Body:
        return self._change(served, ref, write, lambda live: _json_patched(ref, live, operations))

    def unchecked_rules(self, manager: str) -> tuple[UncheckedRule, ...]:
        """The CEL rules that applied to what the manager wrote and could not be evaluated, in order."""
        with self._store.lock:
            return tuple(self._unchecked.get(manager, ()))

    def control(self, old: Body, new: Body, manager: str = CONTROLLER) -> Body:
        """Stores the change of a controller of the cluster; fields that it removes have no owner any more."""
        served = self._registry.find(old["apiVersion"], old["kind"])
        if served is None:
            return self.put_changed(old, new)
        writer = self._writer(served, Write(manager=manager))
        return self.put_changed(old, after_update(served.shape, old, new, writer))

    def put_changed(self, old: Body, new: Body) -> Body:
        """Stores a change as it is, or removes an object that nothing keeps any more."""
        if _may_go(new):
            self._store.remove(old)
            return new
        return self._store.put(new)

    def _change(self, served: ServedKind, ref: Ref, write: Write, patched: Callable[[Body], Any]) -> Body:
        with self._store.lock:
            live = self._store.find(ref)
            if live is None:
                raise NotFound(ref)
            raw = patched(live)
            self._require_same(ref, raw)
            self._require_fresh(ref, live, raw)
            self._decode(served, raw, live)
            new = self._read(served, raw, live)
            new = after_update(served.shape, live, new, self._writer(served, write))
            return self._update(served, live, new, write)

    def _merged(self, served: ServedKind, live: Body | None, body: Body, write: Write) -> dict[str, Any]:
        blank = served.strategy.blank()
        try:
            merged = after_apply(
                served.shape, blank, live or blank, body, self._writer(served, write), force=write.force
            )
        except ShapeError as error:
            raise Invalid(ref_of(body), f"failed to merge: {error}") from error
        except ApplyConflictError as conflict:
            raise _held(ref_of(body), conflict) from conflict
        return with_claims(served.strategy.merged(without(merged)), claims_of(merged))

    def _check_config(self, served: ServedKind, body: Body, live: Body | None) -> None:
        ref = ref_of(body)
        if (body["metadata"]).get("managedFields") is not None:
            raise Invalid(ref, "metadata.managedFields must be nil")
        if live is not None:
            self._require_fresh(ref, live, body)
        elif body["metadata"].get("uid"):
            raise Conflict(
                ref, f"uid mismatch: the provided object specified uid {body['metadata']['uid']}, and none was found"
            )
        try:
            check(served.shape, body, duplicates=False)
        except ShapeError as error:
            raise Invalid(ref, f"failed to create typed patch object: {error}", _cause(str(error))) from error

    def _decode(self, served: ServedKind, body: Body, before: Body | None = None) -> None:
        causes = served.strategy.refused(body, before)
        if causes:
            named = tuple(cause for cause in causes if cause.field)
            message = "; ".join(cause.message for cause in causes)
            raise Invalid(ref_of(body), f"strict decoding error: {message}", named)

    def _read(self, served: ServedKind, body: Body, before: Body | None = None) -> dict[str, Any]:
        """The object as the server reads it; claims are not the kind's to read.

        Of a custom resource an empty list of claims is none, so it does not reset them.
        """
        claims = claims_of(body)
        if served.origin is not Origin.BUILTIN:
            claims = claims or None
        return with_claims(served.strategy.read(without(body), before), claims)

    def _stored(self, served: ServedKind, body: Body) -> dict[str, Any]:
        return with_claims(served.strategy.stored(without(body)), claims_of(body))

    def _create(self, served: ServedKind, new: dict[str, Any], write: Write) -> Body:
        ref = ref_of(new)
        self._made += 1
        system = {
            "uid": str(uuid.uuid5(uuid.NAMESPACE_OID, f"{self._made}")),
            "creationTimestamp": time_text(self._clock.now()),
        }
        new = _wiped(new)
        new = served.strategy.prepared({**new, "metadata": {**new["metadata"], **system}}, None, "")
        self._validate(served, ref, new, None, write)
        if self._store.find(ref) is not None:
            raise AlreadyExists(ref)
        stored = self._stored(served, new)
        return stored if write.dry_run else self._store.put(stored)

    def _update(self, served: ServedKind, old: Body, new: dict[str, Any], write: Write) -> Body:
        kept = {name: old["metadata"][name] for name in (*_KEPT, "resourceVersion") if name in old["metadata"]}
        given = {
            name: value for name, value in new["metadata"].items() if name not in ("generation", "resourceVersion")
        }
        new = {**new, "metadata": {**given, **_settled(kept, given)}}
        new = served.strategy.prepared(new, old, write.subresource)
        self._validate(served, ref_of(old), new, old, write)
        if same_but_times(old, new):
            return old
        stored = self._stored(served, new)
        return stored if write.dry_run else self.put_changed(old, stored)

    def _validate(self, served: ServedKind, ref: Ref, new: Body, old: Body | None, write: Write) -> None:
        causes = served.strategy.invalid(new, old, write.subresource)
        if old is not None:
            causes = (*causes, *changed_for_good(old, new))
        if causes:
            raise invalid(ref, "the object is invalid", causes)
        self._unchecked.setdefault(write.manager, {}).update(dict.fromkeys(served.strategy.unchecked(new, old)))

    def _require_namespace(self, ref: Ref) -> None:
        if not ref.namespace:
            return
        api_version, kind = _NAMESPACE
        namespace = Ref(api_version=api_version, kind=kind, name=ref.namespace)
        found = self._store.find(namespace)
        if found is None:
            raise NotFound(namespace)
        if found["metadata"].get("deletionTimestamp"):
            text = f"unable to create new content in namespace {ref.namespace} because it is being terminated"
            raise Denied(ref, text)

    def _require_same(self, ref: Ref, body: Body) -> None:
        found = ref_of(body)
        if (found.api_version, found.kind) != (ref.api_version, ref.kind):
            raise Invalid(ref, f"the patched object is a {found.api_version} {found.kind}")
        if (found.name, found.namespace) != (ref.name, ref.namespace):
            raise Invalid(ref, f"the name of the object ({found}) does not match the name on the URL ({ref})")

    def _require_fresh(self, ref: Ref, live: Body, body: Body) -> None:
        given = body["metadata"].get("resourceVersion")
        if given and given != live["metadata"]["resourceVersion"]:
            raise Conflict(ref, "the object has been modified; apply your changes to the latest version and try again")

    def _writer(self, served: ServedKind, write: Write) -> FieldWriter:
        return FieldWriter(
            manager=write.manager,
            api_version=served.kind.api_version,
            time=time_text(self._clock.now()),
            subresource=write.subresource,
            ignored=served.strategy.ignored(write.subresource),
        )


def _wiped(body: Body) -> dict[str, Any]:
    """The object without what only the server may set."""
    metadata = {name: value for name, value in body["metadata"].items() if name not in _SERVERS_OWN}
    return {**body, "metadata": metadata}


def _settled(kept: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Puts back what an update cannot change; a uid that differs stays, to be refused."""
    return {**kept, "uid": given["uid"]} if given.get("uid") else kept


def _may_go(body: Body) -> bool:
    """True if the object is being deleted and nothing keeps it: no finalizer, no grace period."""
    metadata = body["metadata"]
    held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    inside = (body.get("spec") or {}).get("finalizers") if body["kind"] == "Namespace" else None
    return bool(metadata.get("deletionTimestamp") and not held and not inside)


def _json_patched(ref: Ref, live: Body, operations: Sequence[Body]) -> Any:
    try:
        return json_patched(live, operations)
    except (PatchError, KeyError, ValueError) as error:
        raise Invalid(ref, f"the server rejected our request due to an error in our request: {error}") from error


def _held(ref: Ref, conflict: ApplyConflictError) -> Conflict:
    claims = tuple(Claim(manager=clash.owner.manager, field=path_text(clash.path)) for clash in conflict.clashes)
    return Conflict(ref, f"Apply failed with {len(claims)} conflicts", claims)


def _cause(message: str) -> tuple[StatusCause, ...]:
    path, _, text = message.partition(": ")
    return (StatusCause(field=path.lstrip("."), message=text),)
