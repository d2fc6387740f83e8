"""Events about nodes: each milestone is told once, in its order, on the plan."""

from __future__ import annotations

from typing import Any

import pytest
from support.recordings import recording

pytestmark = [pytest.mark.slow, pytest.mark.lane("recordings")]

OF_DRAINED = ["NodeDrainStarted", "NodeDrainAcknowledged", "NodeRebooting", "NodeBack"]
OF_SINGLE = ["NodeUpgradeStarted", "NodeRebooting", "NodeBack"]
REASONS = {*OF_DRAINED, *OF_SINGLE, "NodeHeld"}


def told(example: str) -> list[Any]:
    """Those about nodes, oldest first."""
    events = [body for body in recording(example).rehearsal.cluster.store.everything() if body["kind"] == "Event"]
    ours = [body for body in events if body["reason"] in REASONS]
    return sorted(ours, key=lambda body: int(body["metadata"]["resourceVersion"]))


def by_node(example: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    nodes = recording(example).rounds[-1][1].plan or {}
    for node in nodes["status"]["nodeUpgradeStatuses"]:
        found[node] = [body["reason"] for body in told(example) if node in body["message"]]
    return found


def test_each_drained_node_tells_how_far_it_is() -> None:
    found = by_node("three-node")
    assert len(found) == 3
    assert all(reasons == OF_DRAINED for reasons in found.values()), found


def test_the_only_node_is_not_drained() -> None:
    assert list(by_node("single-node").values()) == [OF_SINGLE]


def test_a_node_that_is_held_says_so_once() -> None:
    found = by_node("paused-node")
    held = {node for node, reasons in found.items() if "NodeHeld" in reasons}
    assert held == {"echo-2"}
    assert found["echo-2"] == ["NodeHeld", *OF_DRAINED]


def test_they_are_events_of_the_plan() -> None:
    """So `kubectl describe upgradeplan` lists them."""
    for body in told("three-node"):
        regarded = body["involvedObject"]
        assert (regarded["kind"], regarded["apiVersion"]) == ("UpgradePlan", "management.harvesterhci.io/v1beta1")
        assert body["type"] == "Normal"
        assert body["count"] == 1
