"""One watch of the client: the events of a streaming answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from reconcile.cluster.errors import ServerFailed
from reconcile.cluster.exchange import (
    Exchange,
)
from reconcile.cluster.protocol import (
    EventType,
    WatchEvent,
)
from reconcile.cluster.refusal import ApiCall, refusal_of_event


class ClientWindow:
    """`protocol.Window` over a streaming answer."""

    def __init__(self, call: ApiCall, exchange: Exchange) -> None:
        self._call = call
        self._exchange = exchange

    def __iter__(self) -> Iterator[WatchEvent]:
        for line in self._exchange.lines():
            event = parsed(line, 200)
            if event["type"] == "ERROR":
                self.close()
                raise refusal_of_event(self._call, event["object"])
            yield WatchEvent(type=EventType(event["type"]), body=event["object"])

    def close(self) -> None:
        self._exchange.close()


def parsed(content: bytes, status: int) -> Any:
    """Something between us and the API server may answer 200 with a page of its own."""
    try:
        return json.loads(content)
    except ValueError as error:
        raise ServerFailed(f"the answer is not JSON: {content[:200]!r}", status) from error
