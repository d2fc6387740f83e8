"""Whole upgrades by hand in the played world, pinned as what happened; and what the actors may know."""

from __future__ import annotations

import ast
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from actors.by_hand import journey, upgrade
from actors.playing import Play
from support.invariants import violations
from support.rehearsals import template_set
from support.source_code import modules, nodes

from reconcile.simulator.actors.actor_client import CONFIG_MAP, JOB, KindName
from reconcile.simulator.actors.actor_context import ActorContext
from reconcile.simulator.actors.faults import ApiOutage, FaultPlan
from reconcile.simulator.actors.settings import Settings
from reconcile.simulator.actors.simulation import ClusterVersion, Simulation
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault

pytestmark = pytest.mark.slow

JOURNEYS = sorted((Path(__file__).parent / "actors" / "journeys").glob("*.txt"))
OTHER_TROUBLE = (ApiFault.AWAY, ApiFault.CONFLICT)
LATE = pytest.mark.full("trouble of another kind at the actors' writes; answers that are lost stand for it")
KNOWN = (
    "reconcile.simulator.actors",
    "reconcile.cluster.errors",
    "reconcile.cluster.protocol",
    "reconcile.objects",
    "reconcile.probes.rules.live_migration",
    "reconcile.simulator.apiserver.patches",
    "reconcile.status.times",
    "reconcile.toolkit.restore_list",
    "renderer.catalog.kinds",
    "renderer.context.facts",
    "renderer.errors",
    "renderer.model",
    "renderer.names",
    "renderer.suggest",
)


@pytest.mark.parametrize("pinned", JOURNEYS, ids=lambda path: path.stem)
def test_an_upgrade_goes_as_it_always_went(pinned: Path) -> None:
    play = Play(pinned.stem)
    upgrade(play)
    assert journey(play.facts) == pinned.read_text()
    assert violations(play.facts) == ()


def test_nobody_acts_while_the_api_server_is_away_and_all_go_on_afterwards() -> None:
    play = Play("three-node", faults=FaultPlan(outages=(ApiOutage(lasts=timedelta(minutes=30)),)))
    play.apply("ClusterUpgrade/StopWorkloadUpdates")
    play.apply("ClusterUpgrade/Manifests")
    play.wait(seconds=10)
    assert play.outages == [1800.0]
    before = play.embedded.store.version
    play.wait(seconds=1790)
    assert play.embedded.store.version == before
    play.finish("ClusterUpgrade/Manifests")
    assert len(play.all(JOB, "harvester-system")) == 1


@pytest.mark.parametrize("trouble", [ApiFault.LOST, *(pytest.param(each, marks=LATE) for each in OTHER_TROUBLE)])
def test_the_world_gets_over_any_write_that_goes_wrong(trouble: ApiFault) -> None:
    """Every seventh write of the actors meets it; what happens is the same, only later."""
    rough = Play("paused-node")
    for verb in ("create", "patch", "delete"):
        rough.actors.faults.add(*(InjectedApiFault(trouble=trouble, verb=verb, skip=6) for _ in range(40)))
    upgrade(rough)
    assert len(rough.actors.faults.pending) < 90
    pinned = next(path for path in JOURNEYS if path.stem == "paused-node")
    assert _timeless(journey(rough.facts)) == _timeless(pinned.read_text())
    assert violations(rough.facts) == ()


def _timeless(text: str) -> list[str]:
    return sorted(line.split(maxsplit=1)[1] for line in text.splitlines())


def test_a_conflict_is_no_reason_to_wait() -> None:
    play = Play()
    play.actors.faults.add(InjectedApiFault(trouble=ApiFault.CONFLICT, verb="patch"))
    play.apply("ISODownload/Image")
    assert play.world.step(play.clock.now())


def test_a_server_that_is_away_is_tried_again_in_a_second() -> None:
    play = Play()
    play.actors.faults.away(5)
    assert not play.world.step(play.clock.now())
    due = play.world.next_due()
    assert due is not None
    assert (due - play.clock.now()).total_seconds() == 1


def test_actors_know_the_protocol_and_nothing_of_the_loop() -> None:
    strangers = [
        f"{file}:{node.lineno} {name}"
        for file, tree in modules().items()
        if file.startswith("reconcile/simulator/actors/")
        for node in nodes(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in _imported(node)
        if name.startswith(("reconcile", "renderer")) and not name.startswith(KNOWN)
    ]
    assert strangers == []


def _imported(node: ast.Import | ast.ImportFrom) -> list[str]:
    return [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]


A_MAP = {"apiVersion": "v1", "kind": "ConfigMap"}


class Idle:
    """Looks at Jobs, has nothing to do, and counts how often it looks."""

    def __init__(self, context: ActorContext) -> None:
        self.looks = 0
        self.due: datetime | None = None
        self._client = context.client.as_manager("idle")

    def step(self, now: datetime) -> bool:
        self.looks += 1
        self._client.all(JOB)
        return False

    def next_due(self) -> datetime | None:
        return self.due


def test_an_actor_rests_until_what_it_looks_at_changes_or_its_time_has_come() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    cluster, kinds, idle = EmbeddedCluster(SimulatedClock(start)), template_set().catalog.kinds, list[Idle]()
    cluster.seed([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}])
    client, store = cluster.client(), cluster.store

    def watching(context: ActorContext) -> Idle:
        idle.append(Idle(context))
        return idle[0]

    version = ClusterVersion(now=lambda: store.version, changes=store.changes_of)
    settings = Settings(release={"harvester": "v1.8.0"})
    simulation = Simulation.of(cluster.client(), kinds, settings, controllers=[watching], version=version)

    def looks(after: str, kind: KindName = ("", ""), **more: Any) -> int:
        if kind[1]:
            metadata = {"name": after, "namespace": "default"}
            client.create(kinds.row(*kind).kind, {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, **more})
        simulation.step(start)
        return idle[0].looks

    assert looks("nothing") == 1
    assert looks("nothing") == 1
    assert looks("a-map", CONFIG_MAP) == 1
    pod = {"restartPolicy": "Never", "containers": [{"name": "one", "image": "one"}]}
    assert looks("a-job", JOB, spec={"suspend": True, "template": {"spec": pod}}) == 2
    assert looks("another-map", CONFIG_MAP) == 2
    client.create(kinds.row(*CONFIG_MAP).kind, {**A_MAP, "metadata": {"name": "forgotten", "namespace": "default"}})
    with store.lock:
        store.compact()
    assert looks("nothing") == 3, "nobody can say what has changed"
    idle[0].due = start
    assert looks("a-third-map", CONFIG_MAP) == 4
