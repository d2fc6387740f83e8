"""A loopback server that behaves badly on demand: each request gets the next step of a script."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole answer."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Sequence[tuple[str, str]] = ()

    def give(self, handler: _Handler) -> None:
        content = self.body if isinstance(self.body, str) else json.dumps(self.body)
        handler.send_response(self.status)
        for name, value in self.headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(content.encode())))
        handler.end_headers()
        handler.wfile.write(content.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Lines, one a chunk, and then an end: `clean`, `cut` (no last chunk), or `hang` (until the server stops).

    `chunked` False is what an old proxy makes of it. `before_end` may move a clock.
    """

    lines: Sequence[str] = ()
    end: str = "clean"
    chunked: bool = True
    line_end: str = "\n"
    before_end: Callable[[], None] = lambda: None

    def give(self, handler: _Handler) -> None:
        handler.send_response(200)
        handler.send_header(
            "Transfer-Encoding" if self.chunked else "Connection", "chunked" if self.chunked else "close"
        )
        handler.end_headers()
        for line in self.lines:
            self._write(handler, f"{line}{self.line_end}".encode())
        self.before_end()
        if self.end == "hang":
            handler.server.released.wait()
        if self.end == "clean" and self.chunked:
            handler.wfile.write(b"0\r\n\r\n")
        if self.end != "clean" or not self.chunked:
            _disconnect(handler)

    def _write(self, handler: _Handler, data: bytes) -> None:
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(data), data) if self.chunked else data)
        handler.wfile.flush()


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer at all, until the server stops."""

    def give(self, handler: _Handler) -> None:
        handler.server.released.wait()
        _disconnect(handler)


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection ends without an answer."""

    def give(self, handler: _Handler) -> None:
        _disconnect(handler)


Step = Reply | Stream | Hang | Drop


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Sequence[tuple[str, str]]
    body: Any

    def header(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]


class BadServer(ThreadingHTTPServer):
    """Follows its script; a request after the end of it gets a 500."""

    daemon_threads = True

    def __init__(self, script: Sequence[Step]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = list(script)
        self.seen: list[Seen] = []
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def next_step(self) -> Step:
        return self.script.pop(0) if self.script else Reply(status=500, body="the script is over")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BadServer

    def _handle(self) -> None:
        url = urlsplit(self.path)
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append(
            Seen(
                method=self.command,
                path=url.path,
                query=dict(parse_qsl(url.query)),
                headers=self.headers.items(),
                body=json.loads(content) if content else None,
            )
        )
        with suppress(OSError):  # the client may have gone
            self.server.next_step().give(self)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@contextmanager
def serving(*script: Step) -> Iterator[BadServer]:
    """A server on a free loopback port."""
    server = BadServer(script)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _disconnect(handler: _Handler) -> None:
    handler.close_connection = True
    with suppress(OSError):
        handler.connection.shutdown(socket.SHUT_RDWR)
