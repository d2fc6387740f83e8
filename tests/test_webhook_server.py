"""The webhook's server on loopback: what it answers to whom, and certificates that change while it serves."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from typing import Any

import pytest
from controlplane.waiting import PATIENCE
from support.admission_cases import review_of

from reconcile.admission.certificates import Pair, Validity, new_authority, new_serving_pair
from reconcile.admission.review import ADMITTED, AdmissionRequest, Judgement
from reconcile.admission.webhook_server import LARGEST, PATH, ServingCertificate, WebhookServer, seconds_for
from reconcile.cluster.errors import StatusCause

NOW = datetime.now(UTC).replace(microsecond=0)
VALID = Validity(not_before=NOW - timedelta(hours=1), not_after=NOW + timedelta(hours=1))
AUTHORITY = new_authority(VALID)


def serving(authority: Pair = AUTHORITY, valid: Validity = VALID) -> ServingCertificate:
    pair = new_serving_pair(authority, ["127.0.0.1"], valid)
    return ServingCertificate(
        certificate=pair.certificate, key=pair.key, not_before=valid.not_before, not_after=valid.not_after
    )


@dataclass
class Answering:
    """What stands behind the server: it says whatever a test wants it to."""

    judgement: Judgement = ADMITTED
    error: Exception | None = None
    hold: Event | None = None
    reached: Event = field(default_factory=Event)
    asked: list[tuple[AdmissionRequest, float]] = field(default_factory=list)
    lines: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def __call__(self, request: AdmissionRequest, seconds: float) -> Judgement:
        self.asked.append((request, seconds))
        self.reached.set()
        if self.hold:
            self.hold.wait(10)
        if self.error:
            raise self.error
        return self.judgement


@pytest.fixture
def behind() -> Answering:
    return Answering()


@pytest.fixture
def server(behind: Answering) -> Iterator[WebhookServer]:
    found = WebhookServer(
        "127.0.0.1:0",
        behind,
        log=lambda what, fields: behind.lines.append((what, fields)),
        now=lambda: NOW,
        clock=time.monotonic,
    )
    found.start()
    try:
        yield found
    finally:
        found.stop()


def trusting(*authorities: Pair) -> ssl.SSLContext:
    return ssl.create_default_context(cadata="".join(item.certificate.decode() for item in authorities))


def connected(server: WebhookServer, context: ssl.SSLContext | None = None) -> http.client.HTTPSConnection:
    return http.client.HTTPSConnection(
        "127.0.0.1", server.port, context=context or trusting(AUTHORITY), timeout=PATIENCE
    )


def sent(
    connection: http.client.HTTPSConnection, body: bytes = b"", method: str = "POST", path: str = PATH
) -> tuple[int, str]:
    connection.request(method, path, body=body, headers={"Content-Type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


REVIEW = json.dumps(review_of()).encode()


def test_a_review_is_answered(server: WebhookServer, behind: Answering) -> None:
    server.use(serving())
    behind.judgement = Judgement(causes=(StatusCause(field="spec", message="Forbidden: no", reason="x"),))
    status, text = sent(connected(server), REVIEW, path=f"{PATH}?timeout=4s")
    assert status == 200
    assert json.loads(text)["response"]["status"]["code"] == 422
    ((request, seconds),) = behind.asked
    assert (request.name, 3 < seconds <= 3.4) == ("up", True)
    assert behind.lines == [
        ("admission", {"plan": "up", "operation": "CREATE", "allowed": False, "why": ["spec: Forbidden: no"]})
    ]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", PATH, b"{", 400),
        ("POST", PATH, b"[" * 100_000, 400),
        ("POST", PATH, b"\xff", 400),
        ("POST", PATH, json.dumps({"apiVersion": "v1", "kind": "Pod"}).encode(), 400),
        ("GET", PATH, b"", 405),
        ("POST", "/", REVIEW, 404),
    ],
)
def test_what_is_no_review(
    server: WebhookServer, behind: Answering, method: str, path: str, body: bytes, status: int
) -> None:
    server.use(serving())
    found, text = sent(connected(server), body, method, path)
    assert (found, "Traceback" in text, behind.asked) == (status, False, [])


def test_a_body_that_is_too_large_is_not_read(server: WebhookServer, behind: Answering) -> None:
    server.use(serving())
    assert sent(connected(server), b" " * (LARGEST + 1))[0] == 413
    assert behind.asked == []


def test_a_bug_is_logged_and_says_nothing_to_the_client(server: WebhookServer, behind: Answering) -> None:
    """500: the configuration's failurePolicy decides."""
    server.use(serving())
    behind.error = ZeroDivisionError("oh")
    status, text = sent(connected(server), REVIEW)
    assert (status, "ZeroDivision" in text) == (500, False)
    ((what, fields),) = behind.lines
    assert (what, "ZeroDivisionError: oh" in fields["why"], "Traceback" in fields["traceback"]) == ("bug", True, True)
    behind.error = None
    assert sent(connected(server), REVIEW)[0] == 200


def test_before_there_is_a_certificate_it_does_not_serve(server: WebhookServer) -> None:
    assert not server.serving
    with pytest.raises(ssl.SSLError):
        connected(server).connect()
    server.use(serving())
    assert server.serving


@pytest.mark.parametrize(
    "valid",
    [
        Validity(not_before=NOW - timedelta(hours=2), not_after=NOW),
        Validity(not_before=NOW + timedelta(seconds=1), not_after=NOW + timedelta(hours=1)),
    ],
    ids=["expired", "not yet valid"],
)
def test_one_that_is_not_valid_does_not_serve(server: WebhookServer, valid: Validity) -> None:
    server.use(serving(valid=valid))
    assert not server.serving


def test_a_new_certificate_is_taken_while_connections_are_open(server: WebhookServer) -> None:
    server.use(serving())
    old = connected(server)
    old.connect()
    another = new_authority(VALID)
    server.use(serving(another))
    assert sent(old, REVIEW)[0] == 200, "an open connection goes on"
    assert sent(connected(server, trusting(another)), REVIEW)[0] == 200
    with pytest.raises(ssl.SSLCertVerificationError):
        connected(server, trusting(AUTHORITY)).connect()


def test_what_is_no_pair_is_refused_and_the_old_one_stays(server: WebhookServer) -> None:
    good, other = serving(), serving()
    server.use(good)
    wrong = ServingCertificate(
        certificate=good.certificate, key=other.key, not_before=good.not_before, not_after=good.not_after
    )
    with pytest.raises(OSError, match="mismatch"):
        server.use(wrong)
    assert sent(connected(server), REVIEW)[0] == 200


def test_a_request_under_way_is_finished_at_the_end(behind: Answering) -> None:
    server = WebhookServer("127.0.0.1:0", behind, log=lambda *_: None, now=lambda: NOW, clock=time.monotonic)
    server.start()
    server.use(serving())
    port = server.port
    behind.hold = Event()
    answers: list[int] = []
    client = Thread(target=lambda: answers.append(sent(connected(server), REVIEW)[0]))
    client.start()
    assert behind.reached.wait(10)
    end = Thread(target=server.stop)
    end.start()
    behind.hold.set()
    client.join(10)
    end.join(10)
    assert answers == [200]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def test_a_port_that_is_taken_is_an_error(behind: Answering) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        server = WebhookServer(address, behind, log=lambda *_: None, now=lambda: NOW, clock=time.monotonic)
        with pytest.raises(OSError, match="address already in use"):
            server.start()


@pytest.mark.parametrize(
    ("said", "seconds"),
    [("10s", 8.5), ("1m0s", 25.5), ("500ms", 0.425), ("4.5s", 3.825), ("", 8.5), ("soon", 8.5), ("10", 8.5)],
)
def test_the_seconds_for_an_answer(said: str, seconds: float) -> None:
    assert seconds_for(said) == pytest.approx(seconds)
