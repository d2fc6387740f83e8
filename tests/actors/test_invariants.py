"""Each rule about what happened, with a story that keeps it and one that does not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from support.invariants import violations

from actors.playing import START
from reconcile.simulator.actors.simulation_log import SimulationEvent, SimulationEventType, SimulationLog

PRE = "work pre-drain a 1"
GOOD = [
    "PreDrainAsked a",
    "WorkStarted a pre-drain|Job p-a u1",
    "WorkSucceeded a pre-drain|Job p-a u1",
    "PreDrainAnswered a",
    "Cordoned a",
    "KubernetesUpgraded a|v2, drained",
    "WorkStarted a post-drain|Job q-a u2",
    "WorkSucceeded a post-drain|Job q-a u2",
    "WentDown a",
    "CameBack a|new",
    "PostDrainAnswered a",
    "Uncordoned a",
]


def story(lines: list[str]) -> tuple[SimulationEvent, ...]:
    """`WHAT NODE [SUBJECT]|DETAIL`, a minute after the other."""
    log = SimulationLog()
    for number, line in enumerate(lines):
        head, _, detail = line.partition("|")
        what, node, *subject = head.split()
        log.add(
            START + timedelta(minutes=number), SimulationEventType(what), subject[0] if subject else node, node, detail
        )
    return log.events


def without(*whats: str) -> list[str]:
    return [line for line in GOOD if not line.startswith(whats)]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (GOOD, []),
        (GOOD + [line.replace(" a", " b").replace("-a", "-b") for line in GOOD], []),
        (["MigrationStorm kubevirt|x, y"], ["KubeVirt moved machines by itself: x, y"]),
        (["KubernetesUpgraded a|v2, not drained"], ["a was upgraded without having been drained"]),
        (["KubernetesUpgraded a|v2, by its own Job"], []),
        (["Cordoned a", "Cordoned b"], ["b went out while a was"]),
        (["Cordoned a", "WentDown a", "CameBack a", "Cordoned b"], ["b went out while a was"]),
        (["WentDown a", "CameBack a", "WentDown b"], []),
        (without("WorkSucceeded a pre"), ["Rancher was answered too early on a: PreDrainAnswered"]),
        (without("CameBack", "WentDown"), ["Rancher was answered too early on a: PostDrainAnswered"]),
        (["CameBack a", *without("CameBack", "WentDown")], ["Rancher was answered too early on a: PostDrainAnswered"]),
        ([*GOOD, "WorkStarted a pre-drain|Job p-a u3"], ["Job p-a ran again after it had succeeded"]),
        (["WorkStarted a x|Job x u1", "WorkFailed a x|Job x u1", "WorkStarted a x|Job x u2"], []),
        (["WorkStarted a x|Job x u1", "WorkStarted a x|Job x u1", "WorkSucceeded a x|Job x u1"], []),
    ],
)
def test_what_must_not_happen_is_said(lines: list[str], said: list[str]) -> None:
    assert list(violations(story(lines))) == said


def test_a_fact_reads_as_a_sentence() -> None:
    log = SimulationLog()
    log.add(START, SimulationEventType.VM_MOVED, "d/web", "a", "evacuated", "b")
    log.add(START, SimulationEventType.CAME_BACK, "a", "a", "new")
    assert [str(fact) for fact in log.events] == ["VMMoved d/web on a to b: evacuated", "CameBack a: new"]
