"""Reports each request to an API server: the request, the answer, and the duration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reconcile.cluster.exchange import Exchange, Request, Transport
from reconcile.cluster.refusal import ApiCall

NO_ANSWER = "<error>"
"""The code of a request that was not answered, as client-go has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeCall:
    """A request in RBAC's words, its HTTP status as text, and the seconds until its answer began."""

    verb: str
    kind: str
    code: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMeter:
    """`clock` is monotonic; `record` may be called from several threads at once."""

    clock: Callable[[], float]
    record: Callable[[MadeCall], None]

    def open(self, transport: Transport, call: ApiCall, request: Request) -> Exchange:
        """As `Transport.open`."""
        started, code = self.clock(), NO_ANSWER
        try:
            exchange = transport.open(request)
            code = str(exchange.status)
            return exchange
        finally:
            seconds = self.clock() - started
            self.record(MadeCall(verb=call.verb, kind=call.kind.kind, code=code, seconds=seconds))
