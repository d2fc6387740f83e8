"""A Service read by its address within the cluster: what counts as an answer, and what is said of all else."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from itertools import count
from threading import Thread

import pytest
from controlplane.waiting import PATIENCE

from reconcile.cluster import inside
from reconcile.cluster.errors import BackendFailed
from reconcile.cluster.inside import read_service
from renderer.model.ref import Ref

REPO = Ref(api_version="v1", kind="Service", namespace="harvester-system", name="up-repo")
OK = b"HTTP/1.1 200 OK\r\n"


@contextmanager
def served(answer: bytes) -> Iterator[tuple[inside.Connect, list[bytes]]]:
    """One raw answer, and what was asked for; the address that is dialled is that of this server."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            taken, _ = server.accept()
            with taken:
                asked.append(taken.recv(65536))
                taken.sendall(answer)

        thread = Thread(target=serve, daemon=True)
        thread.start()

        def connect(host: str, expected: int) -> HTTPConnection:
            asked.append(f"{host}:{expected}".encode())
            return HTTPConnection("127.0.0.1", port, timeout=PATIENCE)

        yield connect, asked
        thread.join(timeout=PATIENCE)


def test_the_document_is_read_by_the_services_own_name() -> None:
    with served(OK + b"Content-Length: 5\r\n\r\nhello") as (connect, asked):
        assert read_service(REPO, 80, "/a/b.yaml", connect) == b"hello"
    assert asked[0] == b"up-repo.harvester-system.svc:80"
    assert asked[1].startswith(b"GET /a/b.yaml HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", 404, "answered /x with HTTP 404: Not Found"),
        (b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n", 503, "answered /x with HTTP 503: Service Unavailable"),
        (
            b"HTTP/1.1 302 Found\r\nLocation: http://192.0.2.1/\r\nContent-Length: 0\r\n\r\n",
            302,
            "with HTTP 302: Found",
        ),
        (OK + b"Content-Length: 9\r\n\r\nhello", 0, "did not answer /x: it broke off 4 bytes before its end"),
        (b"no HTTP\r\n\r\n", 0, "did not answer /x: no HTTP"),
        (b"", 0, "did not answer /x: Remote end closed connection without response"),
    ],
)
def test_anything_but_a_whole_200_is_said(answer: bytes, status: int, said: str) -> None:
    with served(answer) as (connect, _), pytest.raises(BackendFailed) as caught:
        read_service(REPO, 80, "/x", connect)
    assert caught.value.status == status
    assert f"Service harvester-system/up-repo {said}" in caught.value.problem.message or said in str(caught.value)


def test_nobody_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(BackendFailed, match="Connection refused"):
        read_service(REPO, 80, "/x", lambda host, expected: HTTPConnection("127.0.0.1", port, timeout=PATIENCE))


def test_what_never_ends_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    body = OK + b"\r\n" + b"x" * 1000
    ticks: Callable[[], float] = count(0, 31).__next__
    with served(body) as (connect, _), pytest.raises(BackendFailed, match="no complete response within 30 s"):
        read_service(REPO, 80, "/x", connect, clock=ticks)
    monkeypatch.setattr(inside, "_LARGEST", 999)
    with served(body) as (connect, _), pytest.raises(BackendFailed, match="more than"):
        read_service(REPO, 80, "/x", connect)
