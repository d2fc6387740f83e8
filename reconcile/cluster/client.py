"""The real cluster: the Protocol's calls as HTTP requests to an API server, and its answers as values or our errors.

One call is one request, except for `list` (one a page). It does not retry, cache or discover: a Kind brings its plural.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from reconcile.cluster.client_window import ClientWindow, parsed
from reconcile.cluster.errors import Gone
from reconcile.cluster.exchange import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    Exchange,
    Query,
    Request,
    Transport,
    collection_path,
    object_path,
    require_complete,
)
from reconcile.cluster.kubeconfig import ClusterAccess
from reconcile.cluster.meter import CallMeter
from reconcile.cluster.protocol import (
    AccessReview,
    Answer,
    Keep,
    Listing,
    Permission,
    Propagation,
    Selection,
)
from reconcile.cluster.refusal import ApiCall, refusal
from reconcile.objects import FIELD_MANAGER
from renderer.model.path import Path
from renderer.model.ref import Body, Kind, Ref, ref_of

_PAGE = 500
_SMALL_PAGE = 100
"""The same where less is kept than comes: a page in memory then counts for more than all that is kept of it."""
_TEXT_PAGE = 250
"""The same where what is not kept stays text."""
_STREAM_GRACE = 15.0  # a server may end its window a little late
_REVIEW = Kind(
    api_version="authorization.k8s.io/v1",
    kind="SelfSubjectAccessReview",
    plural="selfsubjectaccessreviews",
    namespaced=False,
)
_GROUP_VERSION_KIND = "x-kubernetes-group-version-kind"
_STRICT: Query = (("fieldValidation", "Strict"),)
_DRY_RUN: Query = (("dryRun", "All"),)


def connect(
    access: ClusterAccess, *, environ: Mapping[str, str], now: Callable[[], datetime], meter: CallMeter | None = None
) -> Client:
    """A client for what `kubeconfig.find_access` found. Loads the `kubernetes` package; sends nothing yet.

    `now` gives the wall clock with a time zone; credentials expire by it. `meter` records each request.
    """
    from reconcile.cluster.transport import KubernetesTransport

    return Client(KubernetesTransport(access, environ=environ, now=now), meter=meter)


class Client:
    """`protocol.Cluster` over HTTP; see there for what each call means."""

    def __init__(
        self, transport: Transport, check: Callable[[], None] | None = None, meter: CallMeter | None = None
    ) -> None:
        self._transport = transport
        self._check = check
        self._meter = meter

    def guarded(self, check: Callable[[], None]) -> Client:
        return Client(self._transport, check, self._meter)

    def get(self, kind: Kind, ref: Ref) -> Answer:
        return self._answer(ApiCall(verb="get", kind=kind, ref=ref), Request(method="GET", path=object_path(kind, ref)))

    def list(self, selection: Selection, keep: Keep | None = None) -> Listing:
        """Page by page; when history is lost between two pages, once more in one piece, as client-go does."""
        try:
            return self._pages(selection, (("limit", str(_page_size(keep))),), keep)
        except Gone:
            return self._pages(selection, (), keep)

    def watch(self, selection: Selection, *, resource_version: str, window: int) -> ClientWindow:
        query: Query = (
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", resource_version),
            ("timeoutSeconds", str(max(1, window))),
            *_selectors(selection),
        )
        path = collection_path(selection.kind, selection.namespace)
        call = _call_on(selection, "watch")
        request = Request(method="GET", path=path, query=query, timeout=30.0, idle=window + _STREAM_GRACE)
        return ClientWindow(call, self._accepted(call, request))

    def apply(
        self, kind: Kind, body: Body, *, force: bool = False, dry_run: bool = False, field_manager: str = FIELD_MANAGER
    ) -> Answer:
        query = (*_writing(dry_run, field_manager), *((("force", "true"),) if force else ()))
        return self._patch(kind, ref_of(body), body, APPLY_PATCH, query)

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
        return self._patch(kind, ref, patch, MERGE_PATCH, _writing(dry_run, field_manager), subresource)

    def json_patch(
        self,
        kind: Kind,
        ref: Ref,
        operations: Sequence[Body],
        *,
        dry_run: bool = False,
        field_manager: str = FIELD_MANAGER,
    ) -> Answer:
        return self._patch(kind, ref, operations, JSON_PATCH, _writing(dry_run, field_manager))

    def create(self, kind: Kind, body: Body, *, dry_run: bool = False, field_manager: str = FIELD_MANAGER) -> Answer:
        ref = ref_of(body)
        require_complete(kind, ref if ref.name else ref._replace(name=_prefix(body)))
        path = collection_path(kind, ref.namespace)
        request = Request(method="POST", path=path, query=_writing(dry_run, field_manager), body=body)
        return self._answer(ApiCall(verb="create", kind=kind, ref=ref), request)

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
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": str(propagation)}
        if conditions := {k: v for k, v in (("uid", uid), ("resourceVersion", resource_version)) if v}:
            options["preconditions"] = conditions
        if dry_run:
            options["dryRun"] = ["All"]
        request = Request(method="DELETE", path=object_path(kind, ref), body=options)
        answer = self._answer(ApiCall(verb="delete", kind=kind, ref=ref), request)
        stays = answer.body.get("kind") == kind.kind and _stays(answer.body)
        return answer if stays else Answer(body={}, warnings=answer.warnings)

    def put(self, kind: Kind, ref: Ref, subresource: str, body: Body | None = None) -> Answer:
        request = Request(method="PUT", path=object_path(kind, ref, subresource), body=body or {})
        return self._answer(ApiCall(verb="update", kind=kind, ref=ref, subresource=subresource), request)

    def read(self, kind: Kind, ref: Ref, subresource: str, query: Mapping[str, str] | None = None) -> bytes:
        path = object_path(kind, ref, subresource)
        call = ApiCall(verb="get", kind=kind, ref=ref, subresource=subresource)
        return self._accepted(call, Request(method="GET", path=path, query=tuple((query or {}).items()))).read()

    def published_schema(self, kind: Kind) -> Body:
        root = f"apis/{kind.api_version}" if kind.group else f"api/{kind.version}"
        ref = Ref(api_version=kind.api_version, kind=kind.kind, namespace="", name="")
        request = Request(method="GET", path=f"/openapi/v3/{root}")
        document = self._answer(ApiCall(verb="get", kind=kind, ref=ref), request).body
        served = {"group": kind.group, "version": kind.version, "kind": kind.kind}
        found = ((document.get("components") or {}).get("schemas") or {}).values()
        return next((schema for schema in found if served in (schema.get(_GROUP_VERSION_KIND) or ())), {})

    def review(self, permission: Permission) -> AccessReview:
        resource, _, subresource = permission.resource.partition("/")
        attributes = {
            "verb": permission.verb,
            "group": permission.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": permission.namespace,
            "name": permission.name,
        }
        status = self.ask(_REVIEW, {"resourceAttributes": {key: value for key, value in attributes.items() if value}})
        return AccessReview(allowed=bool(status.get("allowed")), reason=str(status.get("reason") or ""))

    def ask(self, kind: Kind, spec: Body) -> Body:
        """The status of a review, such as a TokenReview: an object that is answered and not kept."""
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "spec": spec}
        call = ApiCall(verb="create", kind=kind, ref=ref_of(body))
        status: Body = self._answer(call, Request(method="POST", path=collection_path(kind), body=body)).body["status"]
        return status

    def _pages(self, selection: Selection, limit: Query, keep: Keep | None) -> Listing:
        call = _call_on(selection, "list")
        path = collection_path(selection.kind, selection.namespace)
        items: list[Body] = []
        warnings: dict[str, None] = {}
        token: Query = ()
        while True:
            query = (*limit, *token, *_selectors(selection))
            answer, part = self._page(call, Request(method="GET", path=path, query=query), keep)
            page = answer.body.get("items") or ()
            items += map(keep.share if part else keep.trim, page) if keep else page
            warnings |= dict.fromkeys(answer.warnings)
            metadata = answer.body.get("metadata") or {}
            if not metadata.get("continue"):
                return _listing(selection.kind, items, str(metadata.get("resourceVersion") or ""), tuple(warnings))
            token = (("continue", metadata["continue"]),)

    def _patch(
        self,
        kind: Kind,
        ref: Ref,
        body: Body | Sequence[Body],
        content_type: str,
        query: Query,
        subresource: str = "",
    ) -> Answer:
        path = object_path(kind, ref, subresource)
        request = Request(method="PATCH", path=path, query=query, body=body, content_type=content_type)
        return self._answer(ApiCall(verb="patch", kind=kind, ref=ref, subresource=subresource), request)

    def _page(self, call: ApiCall, request: Request, keep: Keep | None) -> tuple[Answer, bool]:
        """A page of a list, and whether its objects were read no further than they are kept."""
        exchange = self._accepted(call, request)
        content = exchange.read()
        part = _in_part(content, keep.paths) if keep and keep.paths else None
        return Answer(body=part or parsed(content, exchange.status), warnings=exchange.warnings), bool(part)

    def _answer(self, call: ApiCall, request: Request) -> Answer:
        exchange = self._accepted(call, request)
        content = exchange.read()
        return Answer(body=parsed(content, exchange.status) if content else {}, warnings=exchange.warnings)

    def _accepted(self, call: ApiCall, request: Request) -> Exchange:
        if self._check is not None and request.method != "GET" and call.kind != _REVIEW:
            self._check()
        exchange = self._sent(call, request)
        if 200 <= exchange.status < 300:
            return exchange
        raise refusal(call, exchange.status, exchange.read(), exchange.retry_after)

    def _sent(self, call: ApiCall, request: Request) -> Exchange:
        return self._meter.open(self._transport, call, request) if self._meter else self._transport.open(request)


def _page_size(keep: Keep | None) -> int:
    if keep is None:
        return _PAGE
    return _TEXT_PAGE if keep.paths else _SMALL_PAGE


def _in_part(content: bytes, paths: tuple[Path, ...]) -> Body | None:
    from reconcile.cluster.kept_page import read_page  # most commands list no more than a few objects

    return read_page(content, paths)


def _prefix(body: Body) -> str:
    """Of the name that the API server is to make; empty if it makes none."""
    return str(body["metadata"].get("generateName") or "")


def _stays(body: Body) -> bool:
    """True if something keeps an object that has been deleted. A Pod that goes at once is answered whole as well."""
    metadata = body["metadata"]
    kept = metadata.get("finalizers") or (body.get("spec") or {}).get("finalizers")
    return bool(metadata.get("deletionTimestamp") and (kept or metadata.get("deletionGracePeriodSeconds")))


def _call_on(selection: Selection, verb: str) -> ApiCall:
    kind = selection.kind
    ref = Ref(api_version=kind.api_version, kind=kind.kind, namespace=selection.namespace, name="")
    return ApiCall(verb=verb, kind=kind, ref=ref)


def _selectors(selection: Selection) -> Query:
    selectors = (("labelSelector", selection.labels), ("fieldSelector", selection.fields))
    return tuple((name, text) for name, text in selectors if text)


def _writing(dry_run: bool, field_manager: str) -> Query:
    return (("fieldManager", field_manager), *_STRICT, *(_DRY_RUN if dry_run else ()))


def _listing(kind: Kind, items: Sequence[Body], resource_version: str, warnings: tuple[str, ...]) -> Listing:
    """A list's items come without apiVersion and kind for built-in kinds, and from a cache in no fixed order."""
    named = ({"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in items)
    ordered = sorted(named, key=lambda body: (body["metadata"].get("namespace") or "", body["metadata"]["name"]))
    return Listing(items=tuple(ordered), resource_version=resource_version, warnings=warnings)
