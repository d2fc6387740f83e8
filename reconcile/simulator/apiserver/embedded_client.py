"""`protocol.Cluster` over the embedded cluster: permissions, faults and the request log, then the server's own work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy

from reconcile.cluster.errors import Away, Forbidden, Invalid, NoSuchKind, NotFound
from reconcile.cluster.exchange import require_complete
from reconcile.cluster.protocol import (
    AccessReview,
    Answer,
    Keep,
    Listing,
    Permission,
    Propagation,
    Selection,
    permission,
)
from reconcile.objects import FIELD_MANAGER
from reconcile.simulator.apiserver.deletion import DeleteOptions
from reconcile.simulator.apiserver.faults import ApiFault, ApiFaults
from reconcile.simulator.apiserver.requests import Authorizer, Hook, LoggedRequest, Moment, RequestLog
from reconcile.simulator.apiserver.selectors import SelectorError, Test, field_test, label_test
from reconcile.simulator.apiserver.served_kinds import STATUS, Origin, ServedKind
from reconcile.simulator.apiserver.server_parts import Server
from reconcile.simulator.apiserver.watching import EmbeddedWindow, Watched, require_history
from reconcile.simulator.apiserver.write_handlers import Write
from renderer.model.ref import Body, Kind, Ref, ref_of

_PAGE = 500
_REVIEW = Kind(
    api_version="authorization.k8s.io/v1",
    kind="SelfSubjectAccessReview",
    plural="selfsubjectaccessreviews",
    namespaced=False,
)


class EmbeddedClient:
    """One client of the cluster; see `protocol.Cluster` for what each call means."""

    def __init__(self, server: Server, *, access: Authorizer, on_write: Hook) -> None:
        self._server = server
        self._access = access
        self._on_write = on_write
        self._check: Callable[[], None] | None = None
        self.faults = ApiFaults(server.clock, server.wake)
        self.log = RequestLog()

    def guarded(self, check: Callable[[], None]) -> EmbeddedClient:
        """With the same permissions, faults and log."""
        other = copy(self)
        other._check = check
        return other

    def get(self, kind: Kind, ref: Ref) -> Answer:
        require_complete(kind, ref)
        self._meet("get", kind, ref)
        self._permit("get", kind, ref)
        self._server.registry.served(kind)
        with self._server.store.lock:
            found = self._server.store.find(ref)
        if found is None:
            raise NotFound(ref)
        return Answer(body=found)

    def list(self, selection: Selection, keep: Keep | None = None) -> Listing:
        kind = selection.kind
        self._enter("list", selection)
        test = self._test(selection)
        store = self._server.store
        with store.lock:
            items = tuple(body for body in store.all_of(kind, selection.namespace) if test(body))
            version = str(store.version)
        for _ in range(_PAGE, len(items), _PAGE):
            self._meet("list", kind, _collection(selection))
        return Listing(items=tuple(map(keep.trim, items)) if keep else items, resource_version=version)

    def watch(self, selection: Selection, *, resource_version: str, window: int) -> EmbeddedWindow:
        kind, store = selection.kind, self._server.store
        met = self._enter("watch", selection)
        test, version = self._test(selection), int(resource_version or 0)
        with store.lock:
            if version:
                require_history(store, kind, version)
            watched = Watched(kind=kind, test=test, version=version, seconds=window, cut_short=met is ApiFault.CUT)
            cuts = self.faults.cuts
            return EmbeddedWindow(store, self._server.clock, watched, lambda: self.faults.cuts != cuts)

    def apply(
        self, kind: Kind, body: Body, *, force: bool = False, dry_run: bool = False, field_manager: str = FIELD_MANAGER
    ) -> Answer:
        ref = ref_of(body)
        write = Write(manager=field_manager, dry_run=dry_run, force=force)

        def act() -> Body:
            self._permit("patch", kind, ref)
            served = self._server.registry.served(kind)
            with self._server.store.lock:
                if self._server.store.find(ref) is None:
                    self._permit("create", kind, ref)
                return self._server.writes.apply(served, body, write)

        return self._write("apply", kind, ref, write, act)

    def patch(
        self,
        kind: Kind,
        ref: Ref,
        patch: Body,
        *,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = FIELD_MANAGER,
    ) -> Answer:
        write = Write(manager=field_manager, dry_run=dry_run, subresource=subresource)

        def act() -> Body:
            return self._server.writes.patch(self._patched(kind, ref, subresource), ref, patch, write)

        return self._write("patch", kind, ref, write, act)

    def json_patch(
        self,
        kind: Kind,
        ref: Ref,
        operations: Sequence[Body],
        *,
        dry_run: bool = False,
        field_manager: str = FIELD_MANAGER,
    ) -> Answer:
        write = Write(manager=field_manager, dry_run=dry_run)

        def act() -> Body:
            return self._server.writes.json_patch(self._patched(kind, ref, ""), ref, operations, write)

        return self._write("patch", kind, ref, write, act)

    def create(self, kind: Kind, body: Body, *, dry_run: bool = False, field_manager: str = FIELD_MANAGER) -> Answer:
        ref = ref_of(body)
        write = Write(manager=field_manager, dry_run=dry_run)

        def act() -> Body:
            self._permit("create", kind, ref)
            return self._server.writes.create(self._server.registry.served(kind), body, write)

        return self._write("create", kind, ref, write, act)

    def delete(
        self,
        kind: Kind,
        ref: Ref,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation = Propagation.BACKGROUND,
        dry_run: bool = False,
    ) -> Answer:
        deletion = DeleteOptions(uid=uid, resource_version=resource_version, propagation=propagation, dry_run=dry_run)

        def act() -> Body:
            self._permit("delete", kind, ref)
            self._server.registry.served(kind)
            return self._server.deletions.delete(ref, deletion)

        return self._write("delete", kind, ref, Write(manager="", dry_run=dry_run), act)

    def put(self, kind: Kind, ref: Ref, subresource: str, body: Body | None = None) -> Answer:
        def act() -> Body:
            self._permit("update", kind, ref, subresource)
            served = self._server.registry.find(kind.api_version, kind.kind)
            if served and served.origin is not Origin.BUILTIN:
                raise NotFound(ref)
            return self._server.backends.put(kind, ref, subresource, body or {})

        return self._write("put", kind, ref, Write(manager="", subresource=subresource), act)

    def read(self, kind: Kind, ref: Ref, subresource: str, query: Mapping[str, str] | None = None) -> bytes:
        require_complete(kind, ref)
        self._meet("read", kind, ref, subresource)
        self._permit("get", kind, ref, subresource)
        return self._server.backends.read(ref, subresource, query or {})

    def published_schema(self, kind: Kind) -> Body:
        self._meet("get", kind, Ref(api_version=kind.api_version, kind=kind.kind, name=""))
        return self._server.registry.schema_of(kind)

    def review(self, permission: Permission) -> AccessReview:
        self._meet("review", _REVIEW, Ref(api_version=_REVIEW.api_version, kind=_REVIEW.kind, name=""))
        return self._access.verdict(permission)

    def _write(self, verb: str, kind: Kind, ref: Ref, write: Write, act: Callable[[], Body]) -> Answer:
        """A fault before the write replaces it; LOST replaces its answer."""
        if self._check is not None:
            self._check()
        require_complete(kind, ref)
        request = self._request(verb, kind, ref, write.subresource, write.manager, dry_run=write.dry_run)
        if request.writes:
            self._on_write(request, Moment.BEFORE)
        met = self.faults.meet(request, kind, ref)
        body = act()
        if request.writes:
            self._on_write(request, Moment.AFTER)
        if met is ApiFault.LOST:
            raise Away("the connection was closed before the answer came")
        return Answer(body=body)

    def _enter(self, verb: str, selection: Selection) -> ApiFault | None:
        """Does what comes before a collection is read: log, faults, permission, kind."""
        ref = _collection(selection)
        met = self._meet(verb, selection.kind, ref)
        self._permit(verb, selection.kind, ref)
        self._server.registry.served(selection.kind)
        return met

    def _patched(self, kind: Kind, ref: Ref, subresource: str) -> ServedKind:
        self._permit("patch", kind, ref, subresource)
        served = self._server.registry.served(kind)
        if subresource and not (subresource == STATUS and served.status):
            # for a custom kind the server answers that the object does not exist
            raise NoSuchKind(kind, subresource) if served.origin is Origin.BUILTIN else NotFound(ref)
        return served

    def _meet(self, verb: str, kind: Kind, ref: Ref, subresource: str = "") -> ApiFault | None:
        return self.faults.meet(self._request(verb, kind, ref, subresource), kind, ref)

    def _request(
        self, verb: str, kind: Kind, ref: Ref, subresource: str = "", manager: str = "", *, dry_run: bool = False
    ) -> LoggedRequest:
        return self.log.add(
            LoggedRequest(
                number=self.log.number(),
                verb=verb,
                kind=kind.kind,
                namespace=ref.namespace,
                name=ref.name,
                subresource=subresource,
                field_manager=manager,
                dry_run=dry_run,
                time=self._server.clock.now(),
            )
        )

    def _permit(self, verb: str, kind: Kind, ref: Ref, subresource: str = "") -> None:
        needed = permission(verb, kind, subresource=subresource, namespace=ref.namespace, name=ref.name)
        if not self._access.verdict(needed).allowed:
            raise Forbidden(needed)

    def _test(self, selection: Selection) -> Test:
        """The test for what the selection selects. Raises Invalid for a selector that the server would refuse."""
        served = self._server.registry.served(selection.kind)
        try:
            labels, fields = label_test(selection.labels), field_test(served.kind, selection.fields, served.selectable)
        except SelectorError as error:
            raise Invalid(_collection(selection), str(error)) from error
        namespace = selection.namespace
        return lambda body: (
            (not namespace or body["metadata"].get("namespace") == namespace) and labels(body) and fields(body)
        )


def _collection(selection: Selection) -> Ref:
    """The ref of a whole collection; of one object where a field selector names it, as permissions see it."""
    kind = selection.kind
    named = [
        part.strip().partition("=")[2].lstrip("=")
        for part in selection.fields.split(",")
        if part.strip().startswith("metadata.name=")
    ]
    return Ref(
        api_version=kind.api_version, kind=kind.kind, namespace=selection.namespace, name=named[0] if named else ""
    )
