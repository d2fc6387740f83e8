"""Reads what a Service serves by its address within the cluster, for a loop that runs in a pod.

Plain HTTP: no proxy, no redirect, bounded in size and time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException, HTTPResponse, responses

from reconcile.cluster.errors import BackendFailed
from renderer.model.ref import Ref

_SECONDS = 30.0
_LARGEST = 16 * 2**20
_CHUNK = 2**16

Connect = Callable[[str, int], HTTPConnection]
"""(host, port) -> a connection that is not open yet."""


def connection(host: str, port: int) -> HTTPConnection:
    return HTTPConnection(host, port, timeout=_SECONDS)


def read_service(
    service: Ref, port: int, path: str, connect: Connect = connection, clock: Callable[[], float] = time.monotonic
) -> bytes:
    """The body of a plain 200. Raises `BackendFailed`, with status 0 where nobody answered in time, or too much."""
    opened = connect(f"{service.name}.{service.namespace}.svc", port)
    deadline = clock() + _SECONDS
    try:
        opened.request("GET", path, headers={"User-Agent": "upgradeplan"})
        answer = opened.getresponse()
        if answer.status != 200:
            raise BackendFailed(service, path, answer.status, responses.get(answer.status, ""))
        return b"".join(_chunks(answer, service, path, lambda: clock() > deadline))
    except (OSError, HTTPException) as error:
        raise BackendFailed(service, path, 0, str(error) or type(error).__name__) from error
    finally:
        opened.close()


def _chunks(answer: HTTPResponse, service: Ref, path: str, late: Callable[[], bool]) -> list[bytes]:
    chunks: list[bytes] = []
    size = 0
    while chunk := answer.read1(_CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > _LARGEST:
            raise BackendFailed(service, path, 0, f"more than {_LARGEST // 2**20} MiB")
        if late():
            raise BackendFailed(service, path, 0, f"no complete response within {_SECONDS:g} s")
    if answer.length:
        raise BackendFailed(service, path, 0, f"it broke off {answer.length} bytes before its end")
    return chunks
