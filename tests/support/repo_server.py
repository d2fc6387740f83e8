"""The repository over HTTP on loopback, for a loop in another process: `URL/NAMESPACE/SERVICE/harvester-iso/...`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from reconcile.cluster.errors import Away, BackendFailed

Read = Callable[[str, str, str], bytes]
"""By namespace, service and path, as `Repo.read`."""


@contextmanager
def serving(read: Read) -> Iterator[str]:
    """The URL under which the repository answers until the end of the block."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(read))
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(read: Read) -> type[BaseHTTPRequestHandler]:
    class RepoHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = _answer(read, self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    return RepoHandler


def _answer(read: Read, path: str) -> tuple[int, bytes]:
    namespace, _, rest = path.lstrip("/").partition("/")
    service, _, file = rest.partition("/")
    try:
        return 200, read(namespace, service, f"/{file}")
    except BackendFailed as error:
        return error.status, error.message.encode()
    except Away as error:
        return 503, error.message.encode()
