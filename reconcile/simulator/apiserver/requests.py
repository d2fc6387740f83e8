"""The requests made of the embedded cluster: who may make which, a log of them, and hooks around the writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from threading import Lock
from typing import Protocol

from reconcile.cluster.protocol import AccessReview, Permission

WRITES = frozenset(("apply", "patch", "create", "delete", "put"))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedRequest:
    """One request. `verb` is the Protocol's method; a JSON patch is a `patch`. `name` is empty for a collection."""

    number: int
    verb: str
    kind: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    field_manager: str = ""
    dry_run: bool = False
    time: datetime

    @property
    def writes(self) -> bool:
        return self.verb in WRITES and not self.dry_run

    def __str__(self) -> str:
        place = "/".join(filter(None, (self.namespace, self.name)))
        what = " ".join(filter(None, (self.verb, self.kind, place, self.subresource)))
        return f"{what} (dry run)" if self.dry_run else what


class RequestLog:
    """All requests of one client. A list counts once for each page of 500, as a real one is asked for."""

    def __init__(self) -> None:
        self._requests: list[LoggedRequest] = []
        self._numbers = 0
        self._lock = Lock()

    def number(self) -> int:
        """The number of the next request, from 1."""
        with self._lock:
            self._numbers += 1
            return self._numbers

    def add(self, request: LoggedRequest) -> LoggedRequest:
        with self._lock:
            self._requests.append(request)
        return request

    @property
    def requests(self) -> tuple[LoggedRequest, ...]:
        with self._lock:
            return tuple(self._requests)

    @property
    def writes(self) -> tuple[LoggedRequest, ...]:
        """The requests that were to change something, in order, whether they succeeded or were refused."""
        return tuple(request for request in self.requests if request.writes)

    def counts(self) -> Counter[tuple[str, str]]:
        """The number of requests, by verb and kind."""
        return Counter((request.verb, request.kind) for request in self.requests)

    def clear(self) -> None:
        with self._lock:
            self._requests.clear()


_YES = AccessReview(allowed=True)


class Authorizer(Protocol):
    """Decides which requests a client may make."""

    def verdict(self, permission: Permission) -> AccessReview: ...


class Everything:
    """Allows all, as a cluster administrator is allowed."""

    def verdict(self, permission: Permission) -> AccessReview:
        return _YES


class Moment(Enum):
    """The moment when a hook is called: before a write is sent, or after it was carried out and before its answer is
    read."""

    BEFORE = "before"
    AFTER = "after"


Hook = Callable[[LoggedRequest, Moment], None]
"""May raise, so that a test can end the caller at any write."""


def no_hook(request: LoggedRequest, moment: Moment) -> None:
    """Does nothing."""
