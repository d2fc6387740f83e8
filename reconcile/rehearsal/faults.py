"""Trouble on demand: which request of one client shall meet which error, how often, and from when to when.

A fault is told by verb and kind and takes the place of the answer. The embedded cluster asks `meet` before each
request and `lost` after it; nothing here touches an object.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from threading import Lock

from reconcile.cluster.errors import Away, Cause, ClusterError, Conflict, Gone, Invalid, ServerFailed, Throttled
from reconcile.rehearsal.clock import Clock
from reconcile.rehearsal.requests import Request
from renderer.model.ref import Kind, Ref


class Trouble(Enum):
    """What a request meets."""

    CONFLICT = 409
    GONE = 410
    INVALID = 422
    THROTTLED = 429
    FAILED = 500
    AWAY = 503
    HANG = "hang"  # no answer until the client gives up; `seconds` pass on the clock
    LOST = "lost"  # the request is carried out, the answer does not come
    CUT = "cut"  # an open watch ends in the middle


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """`verb`, `kind` and `name` that are empty match any. `skip` requests pass first, then `count` meet the trouble.

    `seconds`: Retry-After of THROTTLED, time-out of HANG.
    """

    trouble: Trouble
    verb: str = ""
    kind: str = ""
    name: str = ""
    skip: int = 0
    count: int = 1
    seconds: float = 30.0

    def matches(self, request: Request) -> bool:
        wanted = ((self.verb, request.verb), (self.kind, request.kind), (self.name, request.name))
        return all(word in ("", found) for word, found in wanted)


class Faults:
    """The faults of one client; may be told of more at any time, from any thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._faults: list[Fault] = []
        self._away_until: datetime | None = None
        self._lock = Lock()

    def add(self, *faults: Fault) -> None:
        with self._lock:
            self._faults.extend(faults)

    def away(self, seconds: float) -> None:
        """From now on and for so long on the clock nothing answers, and every open watch is cut."""
        with self._lock:
            self._away_until = self._clock.now() + timedelta(seconds=seconds)

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()
            self._away_until = None

    @property
    def pending(self) -> tuple[Fault, ...]:
        """Those that have not been met yet as often as they should."""
        with self._lock:
            return tuple(self._faults)

    def meet(self, request: Request, kind: Kind, ref: Ref) -> Trouble | None:
        """Raises what the request meets. LOST is answered, since the request must be carried out first."""
        if self.is_away():
            raise Away("connection refused")
        fault = self._take(request, (Trouble.CUT,))
        if fault is None:
            return None
        if fault.trouble is Trouble.LOST:
            return Trouble.LOST
        if fault.trouble is Trouble.HANG:
            self._clock.advance(fault.seconds)
            raise Away(f"no answer within {fault.seconds:g} s")
        raise _error(fault, kind, ref)

    def cut(self, request: Request) -> ClusterError | None:
        """What an open watch ends with now, if it does."""
        if self.is_away():
            return Away("the stream was cut")
        fault = self._take(request, tuple(trouble for trouble in Trouble if trouble is not Trouble.CUT))
        return Away("the stream was cut") if fault else None

    def is_away(self) -> bool:
        with self._lock:
            return self._away_until is not None and self._clock.now() < self._away_until

    def _take(self, request: Request, not_now: tuple[Trouble, ...]) -> Fault | None:
        """The first fault that matches, one occurrence of it used up."""
        with self._lock:
            for index, fault in enumerate(self._faults):
                if fault.trouble in not_now or not fault.matches(request):
                    continue
                if fault.skip:
                    self._faults[index] = replace(fault, skip=fault.skip - 1)
                    continue
                self._faults[index : index + 1] = [replace(fault, count=fault.count - 1)] if fault.count > 1 else []
                return fault
        return None


def _error(fault: Fault, kind: Kind, ref: Ref) -> ClusterError:
    if fault.trouble is Trouble.CONFLICT:
        return Conflict(ref, "the object has been modified; apply your changes to the latest version and try again")
    if fault.trouble is Trouble.GONE:
        return Gone(kind, "too old resource version")
    if fault.trouble is Trouble.INVALID:
        return Invalid(ref, "refused by a fault on demand", (Cause(field="spec", message="Invalid value: on demand"),))
    if fault.trouble is Trouble.THROTTLED:
        return Throttled("too many requests, please try again later", fault.seconds)
    if fault.trouble is Trouble.FAILED:
        return ServerFailed("internal error on demand")
    return Away("HTTP 503: on demand")
