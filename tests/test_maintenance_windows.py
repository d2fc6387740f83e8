"""Maintenance windows: no node begins outside of them, and the status says when the next one opens."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from support.rehearsals import rehearsal_of
from support.small_cluster import PRE, PRE_JOB, Small, waiting_for_rancher

from reconcile.decide.decision import Wait
from reconcile.probes.rules.windows import window_of
from reconcile.simulator.actors.simulation_log import SimulationEventType

SUNDAY = datetime(2026, 11, 29, tzinfo=UTC)
KEY = "management.harvesterhci.io/maintenance-windows"


@pytest.mark.parametrize(
    ("window", "at", "is_open"),
    [
        ("22:00-04:00", "22:00", True),
        ("22:00-04:00", "03:50", True),
        ("22:00-04:00", "04:00", False),
        ("22:00-04:00", "21:50", False),
        ("Sat 22:00-04:00", "03:00", True),
        ("Sun 22:00-04:00", "03:00", False),
        ("Mon-Fri 00:00-00:00", "12:00", False),
        ("Fri-Mon 00:00-00:00", "12:00", True),
        ("Mon,Sat-Sun 10:10-10:20", "10:10", True),
        ("Mon,Sat-Sun 10:10-10:20", "10:20", False),
    ],
)
def test_a_window_belongs_to_the_day_that_it_opens_on(window: str, at: str, *, is_open: bool) -> None:
    hours, minutes = at.split(":")
    moment = SUNDAY + timedelta(hours=int(hours), minutes=int(minutes))
    assert window_of(window).is_open(moment) is is_open


def waiting(windows: str, at: datetime, **annotations: str) -> Small:
    """Rancher asks to drain node n1, at this time."""
    found = waiting_for_rancher()
    found.patch(found.plan, {"metadata": {"annotations": {KEY: windows, **annotations}}})
    found.scene.clock.advance((at - found.scene.clock.now()).total_seconds())
    found.ask("n1", PRE, "first")
    found.rounds()
    return found


def held(found: Small) -> list[Wait]:
    done = found.round()
    return [wait for wait in done.decision.waits if wait.check] if done.decision else []


def test_a_node_begins_once_a_window_opens() -> None:
    found = waiting("Sun 22:00-23:00; Wed 01:00-02:00", SUNDAY + timedelta(hours=20))
    assert found.jobs() == []
    (wait,) = held(found)
    assert wait.text.startswith(
        "check maintenance-window blocks: no maintenance window is open; the next one opens on Sunday, "
        "2026-11-29 at 22:00 UTC; the node begins then"
    )
    found.scene.clock.advance(7199)
    found.rounds()
    assert (found.jobs(), [wait.slow for wait in held(found)]) == ([], [False])
    found.scene.clock.advance(1)
    found.rounds()
    assert found.jobs() == [PRE_JOB]


def test_a_node_that_has_begun_goes_on_after_the_window() -> None:
    found = waiting("Sun 22:00-23:00", SUNDAY + timedelta(hours=22, minutes=59))
    assert found.jobs() == [PRE_JOB]
    found.scene.clock.advance(3600)
    found.end_job(PRE_JOB)
    found.rounds()
    assert found.state("n1") == "PreDrained"


def test_no_node_begins_in_the_minutes_after_a_window() -> None:
    assert waiting("Sun 22:00-23:00", SUNDAY + timedelta(hours=23, seconds=1)).jobs() == []


def test_the_risk_of_a_time_outside_is_accepted_like_any_other() -> None:
    accepted = {"management.harvesterhci.io/accept-risk": "maintenance-window"}
    assert waiting("Wed 01:00-02:00", SUNDAY, **accepted).jobs() == [PRE_JOB]


@pytest.mark.parametrize("windows", ["Sun 22:05-23:00", "sunday 22:00-23:00", "22:00", "Sun 22:00-23:00; x"])
def test_what_cannot_be_read_is_named_and_nothing_begins(windows: str) -> None:
    found = waiting(windows, SUNDAY)
    assert found.jobs() == []
    said = "\n".join(wait.text for wait in held(found))
    assert "check maintenance-windows blocks: " in said
    assert "is not a maintenance window such as" in said


@pytest.mark.slow
def test_a_rehearsal_waits_for_days_until_a_window_opens() -> None:
    scene = rehearsal_of("single-node")
    found = Small(scene=scene)
    found.patch(found.plan, {"metadata": {"annotations": {KEY: "Sat 02:00-03:00"}}})
    scene.play(lambda done: None)
    assert found.phase == "Succeeded"
    begun = [
        event for event in scene.log.of(SimulationEventType.WORK_STARTED) if event.subject == "single-node-upgrade"
    ]
    assert [event.time.strftime("%A %H") for event in begun] == ["Saturday 02"]
