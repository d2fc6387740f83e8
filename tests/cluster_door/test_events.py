"""Events are written once a cause, counted afterwards, and name the object that they are about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from cluster_door.kinds import CONFIG_MAP, UPGRADE_PLAN, ref
from cluster_door.loopback import client_of
from cluster_door.server import Reply
from reconcile.cluster.events import EventSeverity, Occurrence, emit, event_of

FIRST = datetime(2026, 11, 28, 13, 0, tzinfo=timezone(timedelta(hours=1)))
ONCE = Occurrence(
    regarding=ref(UPGRADE_PLAN, "to-v1.7.0"),
    uid="u-1",
    severity=EventSeverity.WARNING,
    reason="NodeBlocked",
    message="node n1 is blocked",
    component="upgradeplan-controller",
    first=FIRST,
    last=FIRST,
)
AGAIN = replace(ONCE, last=datetime(2026, 11, 28, 12, 5, tzinfo=UTC), count=3)
ABSENT = Reply(status=404, body={"kind": "Status", "message": "not found", "details": {"name": "x", "kind": "events"}})
EXISTS = Reply(status=409, body={"kind": "Status", "reason": "AlreadyExists", "message": "exists"})


def test_event_names_its_object_and_its_cause() -> None:
    body = event_of(ONCE)
    name = body["metadata"].pop("name")
    assert name.startswith("to-v1.7.0.")
    assert body == {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": "default"},
        "involvedObject": {
            "apiVersion": "management.harvesterhci.io/v1beta1",
            "kind": "UpgradePlan",
            "name": "to-v1.7.0",
            "uid": "u-1",
        },
        "type": "Warning",
        "reason": "NodeBlocked",
        "message": "node n1 is blocked",
        "source": {"component": "upgradeplan-controller"},
        "reportingComponent": "upgradeplan-controller",
        "reportingInstance": "",
        "firstTimestamp": "2026-11-28T12:00:00Z",
        "lastTimestamp": "2026-11-28T12:00:00Z",
        "count": 1,
    }


def test_event_about_a_namespaced_object_lives_beside_it() -> None:
    body = event_of(replace(ONCE, regarding=ref(CONFIG_MAP, "a", "harvester-system")))
    assert body["metadata"]["namespace"] == "harvester-system"
    assert body["involvedObject"]["namespace"] == "harvester-system"


def test_name_follows_from_the_cause_and_fits() -> None:
    name = event_of(ONCE)["metadata"]["name"]
    assert event_of(AGAIN)["metadata"]["name"] == name
    assert event_of(replace(ONCE, message="another"))["metadata"]["name"] != name
    assert event_of(replace(ONCE, first=FIRST + timedelta(hours=2)))["metadata"]["name"] != name
    longest = event_of(replace(ONCE, regarding=ref(UPGRADE_PLAN, "p" * 253)))["metadata"]["name"]
    assert len(longest) == 253


@pytest.mark.parametrize(
    ("occurrence", "script", "methods"),
    [
        (ONCE, [Reply()], ["POST"]),
        (ONCE, [EXISTS, Reply()], ["POST", "PATCH"]),
        (AGAIN, [Reply()], ["PATCH"]),
        (AGAIN, [ABSENT, Reply()], ["PATCH", "POST"]),
    ],
    ids=["first", "first again after a crash", "counted", "counted after it has expired"],
)
def test_emit(occurrence: Occurrence, script: list[Reply], methods: list[str]) -> None:
    with client_of(*script) as (client, server):
        emit(client, occurrence)
    assert [seen.method for seen in server.seen] == methods
    last = server.seen[-1].body
    assert (last["count"], last["lastTimestamp"]) == (
        occurrence.count,
        "2026-11-28T12:05:00Z" if occurrence.count > 1 else "2026-11-28T12:00:00Z",
    )
