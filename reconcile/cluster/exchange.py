"""HTTP requests and answers as values, and the URL paths of kinds and objects, as the API conventions lay them out.

Nothing here sends anything, so the client can be read without knowing the library that does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote

from renderer.model.ref import Body, Kind, Ref

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

Query = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`timeout` is how long the server may be silent before it answers, `idle` while it answers; in seconds."""

    method: str
    path: str
    query: Query = ()
    body: Body | Sequence[Body] | None = None
    content_type: str = JSON
    timeout: float = 60.0
    idle: float = 60.0


class Exchange(Protocol):
    """An answer whose headers are there and whose body is still to be read, once, by one thread."""

    @property
    def status(self) -> int: ...

    @property
    def warnings(self) -> tuple[str, ...]:
        """The texts of the `Warning` headers."""
        ...

    @property
    def retry_after(self) -> str: ...

    def read(self) -> bytes:
        """All of the body. Raises Away."""
        ...

    def lines(self) -> Iterator[bytes]:
        """The body line by line as it comes; ends with it or by `close`. Raises Away if it is cut."""
        ...

    def close(self) -> None:
        """Ends `lines` promptly; any thread may call it."""
        ...


class Transport(Protocol):
    """Carries requests to one API server, as one user."""

    def open(self, request: Request) -> Exchange:
        """Sends, once, and waits for the headers. Raises Away, Untrusted, Unauthorized."""
        ...


def collection_path(kind: Kind, namespace: str = "") -> str:
    """The path of a list or create; over all namespaces where `namespace` is empty."""
    root = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
    if not namespace:
        return f"{root}/{kind.plural}"
    if not kind.namespaced:
        raise ValueError(f"{kind} has no namespace, but {namespace!r} was given")
    return f"{root}/namespaces/{quote(namespace, safe='')}/{kind.plural}"


def object_path(kind: Kind, ref: Ref, subresource: str = "") -> str:
    """The path of one object or of its subresource; slashes in `subresource` stay, its `?` does not."""
    require_complete(kind, ref)
    path = f"{collection_path(kind, ref.namespace)}/{quote(ref.name, safe=':')}"
    return f"{path}/{quote(subresource)}" if subresource else path


def require_complete(kind: Kind, ref: Ref) -> None:
    """Raises ValueError, since it is our bug, for a ref that does not name one object of `kind`."""
    if (ref.api_version, ref.kind) != (kind.api_version, kind.kind):
        raise ValueError(f"{ref.api_version} {ref} is not of kind {kind}")
    if not ref.name:
        raise ValueError(f"{ref} has no name")
    if kind.namespaced != bool(ref.namespace):
        raise ValueError(f"{ref} {'needs a' if kind.namespaced else 'takes no'} namespace")
