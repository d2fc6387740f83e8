"""Answers the kubelet's questions: alive, and ready. Nothing else is served."""

from __future__ import annotations

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class HealthServer:
    """Serves `/healthz` and `/readyz` at `address` (`host:port`, an empty host for all)."""

    def __init__(self, address: str, ready: Callable[[], bool]) -> None:
        host, _, port = address.rpartition(":")
        self._server = ThreadingHTTPServer((host, int(port)), _handler(ready))
        self._server.daemon_threads = True
        self._thread = Thread(target=self._server.serve_forever, name="health", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(timeout=5)


def _handler(ready: Callable[[], bool]) -> type[BaseHTTPRequestHandler]:
    class HealthHandler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers = {"/healthz": True, "/readyz": ready()}
            found = answers.get(self.path.partition("?")[0])
            self.send_response(404 if found is None else 200 if found else 503)
            self.end_headers()
            self.wfile.write(b"ok\n" if found else b"not ready\n")

        def log_message(self, format: str, *args: object) -> None:
            return

    return HealthHandler
