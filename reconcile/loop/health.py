"""Answers the kubelet's questions: alive, and ready. Nothing else is served."""

from __future__ import annotations

from collections.abc import Callable

from reconcile.loop.endpoint_server import NO_SUCH_PATH, EndpointServer, Reply

_OK = Reply(status=200, content=b"ok\n")
_NOT_READY = Reply(status=503, content=b"not ready\n")


def health_server(address: str, ready: Callable[[], bool]) -> EndpointServer:
    """A server of `/healthz` and `/readyz` at `address`, which is still to be started."""

    def respond(path: str, _header: Callable[[str], str]) -> Reply:
        if path == "/healthz":
            return _OK
        if path == "/readyz":
            return _OK if ready() else _NOT_READY
        return NO_SUCH_PATH

    return EndpointServer(address, respond, name="health")
