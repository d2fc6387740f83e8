"""Serves GET requests of a few paths in threads of its own. The caller decides the answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

_IDLE = 10.0
"""Seconds that a client may be silent, while TLS is agreed on too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer; without content the status says all."""

    status: int
    content: bytes = b""
    type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] | None = None


NO_SUCH_PATH = Reply(status=404, content=b"not found\n")

Respond = Callable[[str, Callable[[str], str]], Reply]
"""Answers a request for a path, which has no query any more; its headers are asked for by name, and empty if not
there."""


class EndpointServer:
    """Serves at `address` (`host:port`, an empty host for all). `wrap` makes a TLS socket of a connection, without
    shaking hands yet."""

    def __init__(self, address: str, respond: Respond, *, name: str, wrap: Callable[[Any], Any] | None = None) -> None:
        host, _, port = address.rpartition(":")
        self._server = _Server((host, int(port)), _handler(respond))
        self._server.wrap = wrap
        self._thread = Thread(target=self._server.serve_forever, name=name, daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    wrap: Callable[[Any], Any] | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        """In the connection's own thread, so that a client that does not shake hands keeps nobody waiting."""
        request.settimeout(_IDLE)
        super().finish_request(self.wrap(request) if self.wrap else request, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away, or does not trust us, is no news."""


def _handler(respond: Respond) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(self._head())

        def do_HEAD(self) -> None:
            self._head()

        def _head(self) -> bytes:
            reply = respond(self.path.partition("?")[0], lambda name: self.headers.get(name) or "")
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.type)
            self.send_header("Content-Length", str(len(reply.content)))
            for name, value in (reply.headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            return reply.content

        def log_message(self, format: str, *args: object) -> None:
            return

    return Handler
