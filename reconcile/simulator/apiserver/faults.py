"""Injects errors: which request of one client meets which error, how often, and from when to when.

A fault is known by verb and kind, and takes the place of the answer. The client asks `meet` before each request and
`cuts` while a watch is open; nothing here touches an object.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from threading import Lock

from reconcile.cluster.errors import Away, ClusterError, Conflict, Gone, Invalid, ServerFailed, StatusCause, Throttled
from reconcile.simulator.apiserver.clock import Clock
from reconcile.simulator.apiserver.requests import LoggedRequest
from renderer.model.ref import Kind, Ref


class ApiFault(Enum):
    """The fault that a request meets."""

    CONFLICT = 409
    GONE = 410
    INVALID = 422
    THROTTLED = 429
    FAILED = 500
    AWAY = 503
    HANG = "hang"  # no answer until the client gives up; `seconds` pass on the clock
    LOST = "lost"  # the request is carried out, the answer does not come
    OUTAGE = "outage"  # from this request on nothing answers, for `seconds`
    CUT = "cut"  # a watch that is accepted ends in the middle, after its first events


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedApiFault:
    """`verb`, `kind` and `name` that are empty match any. `skip` requests pass first, then `count` meet the fault.

    `seconds`: Retry-After of THROTTLED, time-out of HANG, length of OUTAGE.
    """

    trouble: ApiFault
    verb: str = ""
    kind: str = ""
    name: str = ""
    skip: int = 0
    count: int = 1
    seconds: float = 30.0

    def matches(self, request: LoggedRequest) -> bool:
        expected = ((self.verb, request.verb), (self.kind, request.kind), (self.name, request.name))
        return all(word in ("", found) for word, found in expected)


class ApiFaults:
    """The faults of one client; more can be added at any time, from any thread."""

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        """`wake` lets open watches look again."""
        self._clock = clock
        self._wake = wake
        self._faults: list[InjectedApiFault] = []
        self._away_until: datetime | None = None
        self._cuts = 0
        self._lock = Lock()

    def add(self, *faults: InjectedApiFault) -> None:
        with self._lock:
            self._faults.extend(faults)

    def away(self, seconds: float) -> None:
        """From now on, for this long on the clock, nothing answers, and every open watch is cut."""
        with self._lock:
            self._away_until = self._clock.now() + timedelta(seconds=seconds)
        self.cut_streams()

    def cut_streams(self) -> None:
        """Cuts every watch that is open now."""
        with self._lock:
            self._cuts += 1
        self._wake()

    @property
    def cuts(self) -> int:
        """The number of times that the open watches were cut; a watch that sees another number than when it was opened
        is cut."""
        with self._lock:
            return self._cuts

    def clear(self) -> None:
        with self._lock:
            self._faults.clear()
            self._away_until = None

    @property
    def pending(self) -> tuple[InjectedApiFault, ...]:
        """The faults that have not been met as often as requested."""
        with self._lock:
            return tuple(self._faults)

    def meet(self, request: LoggedRequest, kind: Kind, ref: Ref) -> ApiFault | None:
        """Raises what the request meets. LOST and CUT are answered: they come when the request has been carried out."""
        if self.is_away():
            raise Away("connection refused")
        fault = self._take(request)
        if fault is None or fault.trouble in (ApiFault.LOST, ApiFault.CUT):
            return fault.trouble if fault else None
        if fault.trouble is ApiFault.HANG:
            self._clock.advance(fault.seconds)
            raise Away(f"no answer within {fault.seconds:g} s")
        if fault.trouble is ApiFault.OUTAGE:
            self.away(fault.seconds)
            raise Away("connection refused")
        raise _error(fault, kind, ref)

    def is_away(self) -> bool:
        with self._lock:
            return self._away_until is not None and self._clock.now() < self._away_until

    def _take(self, request: LoggedRequest) -> InjectedApiFault | None:
        """The first fault that matches, one occurrence of it used up."""
        with self._lock:
            for index, fault in enumerate(self._faults):
                if not fault.matches(request):
                    continue
                if not fault.skip:
                    left = [replace(fault, count=fault.count - 1)] if fault.count > 1 else []
                    self._faults[index : index + 1] = left
                    return fault
                self._faults[index] = replace(fault, skip=fault.skip - 1)
        return None


def _error(fault: InjectedApiFault, kind: Kind, ref: Ref) -> ClusterError:
    if fault.trouble is ApiFault.CONFLICT:
        return Conflict(ref, "the object has been modified; apply your changes to the latest version and try again")
    if fault.trouble is ApiFault.GONE:
        return Gone(kind, "too old resource version")
    if fault.trouble is ApiFault.INVALID:
        return Invalid(
            ref, "refused by a fault on demand", (StatusCause(field="spec", message="Invalid value: on demand"),)
        )
    if fault.trouble is ApiFault.THROTTLED:
        return Throttled("too many requests, please try again later", fault.seconds)
    if fault.trouble is ApiFault.FAILED:
        return ServerFailed("internal error on demand")
    return Away("HTTP 503: on demand")
