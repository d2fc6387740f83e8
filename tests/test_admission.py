"""Which node may begin a step of a lane: the table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconcile.decide.admission import NotAdmitted, admit, always_admit
from renderer.model.phase import Lane, RequirePeers

ONE = Lane(name="drain", at_most=1, waiting="busy", require_peers=RequirePeers(all=(), waiting="unhealthy"))
TWO = replace(ONE, at_most=2)
ALONE = replace(ONE, require_peers=None)
BAD = ("Node b: not ready",)

# lane, who is inside and how many steps each has begun, what is wrong with other nodes, what is said of node a
TABLE: dict[str, tuple[Lane, dict[str, int], tuple[str, ...], NotAdmitted | None]] = {
    "the lane is empty": (ONE, {}, (), None),
    "it is inside": (ONE, {"a": 2}, (), None),
    "another one is inside": (ONE, {"b": 1}, (), NotAdmitted(text="busy: b", patient=True, out_of_turn=True)),
    "there is room for two": (TWO, {"b": 1}, (), None),
    "both places are taken": (
        TWO,
        {"b": 1, "c": 2},
        (),
        NotAdmitted(text="busy: b, c", patient=True, out_of_turn=True),
    ),
    "too many are inside and it is the furthest": (ONE, {"b": 1, "a": 3}, (), None),
    "too many are inside and another is further": (
        ONE,
        {"a": 1, "b": 3},
        (),
        NotAdmitted(text="busy: b", patient=True),
    ),
    "too many are inside, as far as each other": (ONE, {"b": 1, "a": 1}, (), NotAdmitted(text="busy: b", patient=True)),
    "another node is not healthy": (ONE, {"a": 2}, BAD, NotAdmitted(text=f"unhealthy: {BAD[0]}", patient=False)),
    "its turn comes before the others' health": (
        ONE,
        {"b": 1},
        BAD,
        NotAdmitted(text="busy: b", patient=True, out_of_turn=True),
    ),
    "of many that are not healthy three are named": (
        ONE,
        {},
        ("b", "c", "d", "e"),
        NotAdmitted(text="unhealthy: b; c; d", patient=False),
    ),
    "the lane asks nothing of other nodes": (ALONE, {}, BAD, None),
}


@pytest.mark.parametrize(("lane", "inside", "unhealthy", "said"), TABLE.values(), ids=TABLE)
def test_admission(lane: Lane, inside: dict[str, int], unhealthy: tuple[str, ...], said: NotAdmitted | None) -> None:
    assert admit("a", lane, inside, unhealthy) == said


def test_a_step_without_a_lane_is_always_admitted() -> None:
    assert always_admit() is None
