"""A check that passes although not all could be seen: the loop says what could not, once."""

from __future__ import annotations

import pytest
from support.small_cluster import api_servers, world

from reconcile.observe.snapshot import Snapshot
from reconcile.preflight.noting import NotingFailures
from reconcile.probes.look import CERTIFICATES, ReadFailure

pytestmark = pytest.mark.slow

WARNED = "PreflightWarned"


def test_of_several_api_servers_those_that_do_not_answer_are_named() -> None:
    found = world("n1", more=[api_servers("192.0.2.1", "192.0.2.2", "192.0.2.3")])
    found.rounds()
    assert found.phase == "ISODownloading", "one that answers is enough"
    [said] = [text for reason, text in found.events() if reason == WARNED]
    assert said.startswith("pre-flight checks: api-server-certificates: the certificate of the API server at 192.0.2.2")
    assert "192.0.2.3 could not be read" in said
    found.restart()
    found.rounds()
    assert len([reason for reason, _ in found.events() if reason == WARNED]) == 1


def test_where_all_answer_nothing_is_said() -> None:
    found = world("n1")
    found.rounds()
    assert (found.phase, WARNED in dict(found.events())) == ("ISODownloading", False)


def test_where_none_answers_each_is_named() -> None:
    """What a network says names no address."""
    read = Snapshot()
    read.read.add(CERTIFICATES)
    read.readings[CERTIFICATES.name] = {
        "192.0.2.1": ReadFailure(why="no answer within 1.5 s"),
        "192.0.2.2": ReadFailure(why="192.0.2.2 refuses the connection"),
    }
    look = NotingFailures(read)
    said = [look.reading(CERTIFICATES, name) for name in ("192.0.2.1", "192.0.2.2")]
    assert said == list(read.readings[CERTIFICATES.name].values())
    assert [failure.why for failure in look.failures] == [
        "certificates reading of 192.0.2.1: no answer within 1.5 s",
        "192.0.2.2 refuses the connection",
    ]
