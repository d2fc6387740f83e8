"""The interface to a cluster. The real adapter and the embedded cluster both answer to it.

No library is imported here and no I/O is done. Every method may be called from several threads at once, and raises
the errors of `errors.py`. Bodies are JSON-like values; nobody changes one in place, neither caller nor cluster.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from reconcile.objects import FIELD_MANAGER
from renderer.model.path import Path
from renderer.model.ref import Body, Kind, Ref


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Permission:
    """`verb` on `resource` (with subresource as `nodes/proxy`). An empty namespace means all, or cluster scope."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {resource}{named}" + (f" in namespace {self.namespace}" if self.namespace else "")

    def rule(self) -> Body:
        """The PolicyRule that grants it; without resourceNames where a request carries no name."""
        rule: dict[str, list[str]] = {"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]}
        if self.name and self.verb not in ("create", "list", "watch"):
            rule["resourceNames"] = [self.name]
        return rule

    def rule_text(self) -> str:
        """The rule on one line; YAML readers take it as it is."""
        return json.dumps(self.rule())


def permission(verb: str, kind: Kind, *, subresource: str = "", namespace: str = "", name: str = "") -> Permission:
    """The permission for `verb` on a kind; of `proxy/stats/summary` RBAC sees `proxy` only."""
    resource = "/".join(filter(None, (kind.plural, subresource.partition("/")[0])))
    return Permission(verb=verb, group=kind.group, resource=resource, namespace=namespace, name=name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One object as the cluster has it now (or would have it, after a dry run), and the server's warnings."""

    body: Body
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """The part of the objects of a list that is kept: `trim` returns it of each; `paths` are all that it has anything
    of, None where that may be everything. `share` does the same for an object that was read no further than that."""

    trim: Callable[[Body], Body]
    share: Callable[[Body], Body] = lambda body: body
    paths: tuple[Path, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The objects that a list or a watch covers.

    An empty namespace means all of them. `labels` and `fields` are selectors in Kubernetes' own text form
    (`a=b,c!=d,e,!f,g in (h,i)`; `metadata.name=x`); empty selects everything.
    """

    kind: Kind
    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def __str__(self) -> str:
        parts = (self.kind, self.namespace and f"in {self.namespace}", self.labels, self.fields)
        return " ".join(str(part) for part in parts if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All objects of a selection, ordered by namespace and name, each with apiVersion and kind.

    `resource_version` is the list's own: a watch from there misses nothing and repeats nothing.
    """

    items: tuple[Body, ...]
    resource_version: str
    warnings: tuple[str, ...] = ()


class EventType(StrEnum):
    """A BOOKMARK brings nothing but a new resourceVersion."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchEvent:
    """One change. Of a DELETED object, `body` is its last state; an object that leaves a selector is DELETED too."""

    type: EventType
    body: Body


class Window(Protocol):
    """One server window of a watch: iterate it once, from one thread."""

    def __iter__(self) -> Iterator[WatchEvent]:
        """Ends when the window is over or closed. Raises Gone (history is gone) and Away (cut stream)."""
        ...

    def close(self) -> None:
        """Ends the iteration promptly; may be called from another thread, and again."""
        ...


class Propagation(StrEnum):
    """The fate of an object's dependents when it is deleted."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessReview:
    """The answer to an access review. `reason` is the authorizer's own text, often empty."""

    allowed: bool
    reason: str = ""


class Cluster(Protocol):
    """A cluster. A Ref's apiVersion and kind must be those of the Kind beside it; ValueError (our bug) if not.

    `dry_run` answers what would be, with all of admission, and changes nothing. All writes are validated strictly:
    an undeclared or duplicate field is Invalid. A write that changes nothing leaves resourceVersion as it is.
    """

    def get(self, kind: Kind, ref: Ref) -> Answer:
        """The object. Raises NotFound, NoSuchKind."""
        ...

    def list(self, selection: Selection, keep: Keep | None = None) -> Listing:
        """All pages, of each object what `keep` keeps as its page comes: all of it by default.

        Raises NoSuchKind; Gone if history was lost between two pages again and again.
        """
        ...

    def watch(self, selection: Selection, *, resource_version: str, window: int) -> Window:
        """Changes after `resource_version`, bookmarks included, for at most `window` seconds.

        Returns once the server has accepted the watch, so that a refusal is raised here and not while iterating;
        Gone may come from either. With window 0 the embedded cluster gives what has happened already and ends; a
        real server has no such mode and is asked for 1 s.
        """
        ...

    def apply(
        self, kind: Kind, body: Body, *, force: bool = False, dry_run: bool = False, field_manager: str = FIELD_MANAGER
    ) -> Answer:
        """Server-side apply; creates what is not there. Raises Conflict with claims unless `force`."""
        ...

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
        """JSON merge patch (RFC 7386); null removes. Never creates: NotFound.

        `metadata.resourceVersion` in the patch makes it conditional: Conflict without claims if stale.
        `subresource` is `status`, or empty for the object itself.
        """
        ...

    def json_patch(
        self,
        kind: Kind,
        ref: Ref,
        operations: Sequence[Body],
        *,
        dry_run: bool = False,
        field_manager: str = FIELD_MANAGER,
    ) -> Answer:
        """JSON patch (RFC 6902), for what a merge patch cannot say: taking our entry out of managedFields.

        A `test` operation that does not hold raises Invalid.
        """
        ...

    def create(self, kind: Kind, body: Body, *, dry_run: bool = False, field_manager: str = FIELD_MANAGER) -> Answer:
        """Raises AlreadyExists; NotFound with the Namespace's ref if that is missing."""
        ...

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
        """Deletes one object. `uid` and `resource_version` are preconditions: Conflict if they do not hold.

        The body is the object if it stays for now (finalizers, grace: it has a deletionTimestamp), empty if it is
        gone. Raises NotFound.
        """
        ...

    def put(self, kind: Kind, ref: Ref, subresource: str, body: Body | None = None) -> Answer:
        """PUT on a subresource that acts: `start` and `stop` of subresources.kubevirt.io VirtualMachines.

        The answer's body is empty where the server says nothing. Conflict if it does not fit the object's state.
        """
        ...

    def read(self, kind: Kind, ref: Ref, subresource: str, query: Mapping[str, str] | None = None) -> bytes:
        """GET of a subresource's bytes: `proxy/stats/summary` of a Node, `proxy/PATH` of a Service, `log` of a Pod.

        A Service's ref is named `[scheme:]name[:port]` here. BackendFailed if what is proxied fails or is not there;
        a Service that is absent is BackendFailed with 404 too, since servers answer the same without endpoints.
        """
        ...

    def published_schema(self, kind: Kind) -> Body:
        """The schema of a kind in the server's OpenAPI document; empty where it has published none, or not yet.

        Raises NoSuchKind where the kind's group or version is not served.
        """
        ...

    def review(self, permission: Permission) -> AccessReview:
        """True if we hold a permission (SelfSubjectAccessReview)."""
        ...

    def guarded(self, check: Callable[[], None]) -> Cluster:
        """A client of the same cluster that calls `check` before each write, dry runs included; it raises to refuse."""
        ...
