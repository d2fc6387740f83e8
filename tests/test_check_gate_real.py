"""A plan that pre-flight checks block, on a real API server: it says why, and goes on once that is mended."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Thread
from typing import Any

import pytest
from bench.live import PLANS
from controlplane.cluster import ControlPlane
from controlplane.waiting import PATIENCE, until
from support.real_upgrade import process, site

pytestmark = [pytest.mark.controlplane, pytest.mark.lane("upgrades")]

NODES = "/api/v1/nodes"


@pytest.fixture
def blocked(wiped_control_plane: ControlPlane) -> Iterator[tuple[ControlPlane, str]]:
    """One node, cordoned, and a loop at work."""
    plane = wiped_control_plane
    with site(plane, "single-node") as place:
        (node,) = plane.api.get(NODES)["items"]
        plane.api.patch(f"{NODES}/{node['metadata']['name']}", {"spec": {"unschedulable": True}})
        manager = process(place, "single-node", lambda done: None, transport=place.transport())
        thread = Thread(target=manager.run, daemon=True)
        thread.start()
        try:
            yield plane, place.name
        finally:
            manager.stop()
            thread.join(timeout=PATIENCE)


@pytest.mark.full(
    "a plan that is held on a real API server; a phase by hand that checks hold there (test_one_phase_real.py), and "
    "the loop on the embedded cluster (test_check_gate.py), stand for it"
)
def test_a_blocked_plan_says_why_and_goes_on_once_that_is_mended(blocked: tuple[ControlPlane, str]) -> None:
    plane, name = blocked

    def status() -> Any:
        return plane.api.get(f"{PLANS}/{name}").get("status") or {}

    def degraded() -> Any:
        return next((item for item in status().get("conditions", ()) if item["type"] == "Degraded"), {})

    def told() -> list[str]:
        events = plane.api.get("/apis/events.k8s.io/v1/events")["items"]
        return [event["reason"] for event in events if event["regarding"]["name"] == name]

    until("the plan is held", lambda: degraded().get("reason") == "PreflightBlocked")
    assert "check node-schedulable blocks" in degraded()["message"]
    assert status()["currentPhase"] == "Initialized"
    until("that is told", lambda: "PreflightBlocked" in told())
    (node,) = plane.api.get(NODES)["items"]
    plane.api.patch(f"{NODES}/{node['metadata']['name']}", {"spec": {"unschedulable": None}})
    until("the plan goes on", lambda: status()["currentPhase"] != "Initialized")
    until("that is told too", lambda: "PreflightPassed" in told())
    assert told().count("PreflightBlocked") == 1
