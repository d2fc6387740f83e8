"""What a round costs grows with the number of nodes and no faster, what a node's upgrade costs does not grow with them,
and the log stays short."""

from __future__ import annotations

import cProfile
import pstats
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from bench.inputs import EXAMPLE, write_inputs
from support.rehearsals import START, template_set

from reconcile.loop.round import Round
from reconcile.loop.round_log import RoundLog
from reconcile.simulator.rehearsal.rehearsal import Rehearsal, prepare
from renderer.files.inputs import read_inputs
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Ref

pytestmark = pytest.mark.slow

SAID: dict[str, Any] = {
    "currentPhase": "NodeUpgrading",
    "previousVersion": "v1.7.1",
    "isoImageID": "hvst-upgrade-864fh-iso",
}


def at_node_upgrade(nodes: int, work: Path) -> Rehearsal:
    """A cluster whose nodes all wait for Rancher; the plan has been begun by another manager."""
    inputs = read_inputs([str(write_inputs(nodes, work / str(nodes)))])
    assert inputs.release is not None
    scene = prepare(inputs, template_set(), start=START)
    kind = scene.deps.kinds.row(PLAN_API_VERSION, "UpgradePlan").kind
    ref = Ref(api_version=PLAN_API_VERSION, kind="UpgradePlan", name=scene.name)
    status = {**SAID, "releaseMetadata": dict(inputs.release.body)}
    scene.client.patch(kind, ref, {"status": status}, subresource="status")
    return scene


def calls_of_a_round(nodes: int, work: Path) -> int:
    scene = at_node_upgrade(nodes, work)
    for _ in range(6):
        scene.reconciler.round(scene.name)
    profile = cProfile.Profile()
    done = profile.runcall(scene.reconciler.round, scene.name)
    assert done.decision is not None
    assert len(done.decision.waits) == nodes
    assert done.results == ()
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def test_a_round_of_twice_as_many_nodes_does_at_most_twice_as_much(tmp_path: Path) -> None:
    few, many = calls_of_a_round(16, tmp_path), calls_of_a_round(32, tmp_path)
    assert many < 2 * few
    assert (many - few) / 16 < 2, "a node of which nothing has changed is read or decided again"


def two_nodes_of(nodes: int, work: Path) -> tuple[int, int, int]:
    """The rounds, the requests of the loop and all calls of functions in which the first two of so many nodes are
    upgraded."""
    scene, rounds = at_node_upgrade(nodes, work), list[Round]()
    scene.drive(scene.reconciler, rounds.append).run(scene.name, timedelta(minutes=2))
    scene.client.log.clear()
    rounds.clear()
    profile = cProfile.Profile()
    profile.runcall(scene.drive(scene.reconciler, rounds.append).run, scene.name, timedelta(minutes=38))
    states = [entry["state"] for entry in rounds[-1].decision.status.node_states.values()]  # type: ignore[union-attr]
    assert states.count("PostDrained") == 2
    return len(rounds), len(scene.client.log.requests), int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


def test_the_rounds_and_requests_of_a_node_do_not_depend_on_how_many_there_are(tmp_path: Path) -> None:
    """The first cluster warms what is read once."""
    _, few, many = (two_nodes_of(nodes, tmp_path) for nodes in (3, 4, 10))
    assert few[0] == pytest.approx(many[0], rel=0.05)
    assert few[1] == pytest.approx(many[1], rel=0.05)
    assert many[1] < 400
    assert many[0] < 60, "rounds are made that would be the one before again"
    beside = (many[2] - few[2]) / (10 - 4) / many[0]
    assert beside < 34, "a node is looked at while others are upgraded"
    assert few[2] / 2 < 420_000, "the upgrade of a node takes more work than it did"


def calls_of_a_rehearsal(nodes: int, work: Path) -> int:
    inputs = [str(write_inputs(nodes, work / str(nodes))), str(EXAMPLE / "facts.yaml")]
    scene = prepare(read_inputs(inputs), template_set(), start=START)
    profile = cProfile.Profile()
    assert profile.runcall(scene.play, lambda done: None).succeeded
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.full("three whole rehearsals; the upgrade of two nodes among few and many stands for them")
def test_a_rehearsal_takes_as_much_for_a_node_however_many_there_are(tmp_path: Path) -> None:
    """The first one warms what is read once."""
    calls_of_a_rehearsal(4, tmp_path / "warm")
    few, some, many = (calls_of_a_rehearsal(nodes, tmp_path) for nodes in (4, 8, 16))
    assert (many - some) / 8 < 1.1 * (some - few) / 4, "a node is looked at while others are upgraded"
    assert (many - some) / 8 < 890_000, "the upgrade of a node takes more work than it did"


def test_what_all_nodes_wait_for_is_logged_once(tmp_path: Path) -> None:
    said: list[Any] = []
    scene = at_node_upgrade(5, tmp_path)
    for _ in range(6):
        done = scene.reconciler.round(scene.name)
    RoundLog(lambda what, fields: said.append(fields) if what == "waiting" else None)(done)
    assert [(line["step"], line["nodes"], line["why"]) for line in said] == [
        ("PreDrain", 5, "waiting for Rancher to request the drain of this node")
    ]
