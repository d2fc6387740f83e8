"""One HTTP request and its answer as values, so that the client can be read without knowing who carries them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from renderer.model.ref import Body

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
