"""Two loops on one cluster: one writes at a time, whatever happens to the one that does, and the end is the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from support.final_state import FinalState, assert_same, final_state_of
from support.recordings import undisturbed_end
from support.rehearsals import START, rehearsal_of, rendering, settle

from reconcile.cluster.errors import Away
from reconcile.loop.lease import LEASE, NAME, OUTAGES, Election
from reconcile.loop.outage_clock import OutageClock
from reconcile.loop.reconciler import Reconciler
from reconcile.simulator.apiserver.embedded_client import EmbeddedClient
from reconcile.simulator.apiserver.requests import LoggedRequest, Moment, no_hook
from reconcile.simulator.rehearsal.rehearsal import Rehearsal
from reconcile.simulator.rehearsal.watches import WatchedSource
from renderer.model.ref import Ref

pytestmark = pytest.mark.slow

EXAMPLE, NAMESPACE = "single-node", "harvester-system"
REF = Ref(api_version=LEASE.api_version, kind=LEASE.kind, namespace=NAMESPACE, name=NAME)
TICK = 8.0


@dataclass
class Loop:
    """One of the two. `writes` has who held the lease at each write but those of the lease itself."""

    identity: str
    scene: Rehearsal
    hook: Callable[[Loop, LoggedRequest], None] = lambda loop, request: None
    writes: list[str] = field(default_factory=list)
    paused: bool = False
    over: bool = False
    looked: float = float("-inf")
    client: EmbeddedClient = field(init=False)
    outage_clock: OutageClock = field(init=False)
    election: Election = field(init=False)
    reconciler: Reconciler = field(init=False)

    def __post_init__(self) -> None:
        scene = self.scene
        client = self.client = scene.cluster.client(on_write=self._wrote)
        self.outage_clock = OutageClock(scene.clock.now)
        self.election = Election(
            client,
            NAMESPACE,
            self.identity,
            clock=self.clock,
            now=scene.clock.now,
            outage_clock=self.outage_clock,
        )
        parts = replace(
            scene.deps,
            cluster=client.guarded(self.election.require),
            source=WatchedSource(client, scene.cluster.store, scene.deps.kinds, self.clock),
            rendering=rendering(),
        )
        self.reconciler = Reconciler(parts)

    def clock(self) -> float:
        return (self.scene.clock.now() - START).total_seconds()

    def turn(self, *, moved: bool) -> bool:
        """Renews, and has a round if it leads and there may be something to do; whether there is more at once."""
        if self.paused or not self.election.attempt() or not (moved or self.clock() - self.looked > 60):
            return False
        self.looked = self.clock()
        try:
            done = self.reconciler.round(self.scene.name)
        except Away:
            return False
        self.over = done.over
        if done.again:
            self.looked = float("-inf")
        return done.again

    def _wrote(self, request: LoggedRequest, moment: Moment) -> None:
        if request.kind == "Lease" or moment is not Moment.BEFORE:
            return
        self.writes.append(holder(self.scene))
        self.hook(self, request)


def holder(scene: Rehearsal) -> str:
    lease = scene.cluster.store.find(REF)
    assert lease is not None
    return str(lease["spec"].get("holderIdentity") or "")


def tick(scene: Rehearsal, loops: tuple[Loop, ...]) -> None:
    """Everybody until nobody has anything to do at this moment, then some seconds later."""
    for _ in range(100):
        moved = scene.participants.step(scene.clock.now())
        scene.cluster.collect()
        again = [loop.turn(moved=moved) for loop in loops]
        if not (moved or any(again)):
            break
    scene.clock.advance(TICK)


def play(scene: Rehearsal, *loops: Loop) -> None:
    for _ in range(4000):
        tick(scene, loops)
        if any(loop.over for loop in loops):
            settle(scene)
            return
    raise AssertionError("it does not end")


@pytest.fixture(scope="module")
def alone() -> FinalState:
    return undisturbed_end(EXAMPLE)


def test_one_of_two_does_all_the_work(alone: FinalState) -> None:
    scene = rehearsal_of(EXAMPLE, on_write=no_hook)
    first, second = Loop("first", scene), Loop("second", scene)
    play(scene, first, second)
    assert set(first.writes) == {"first"}
    assert second.writes == []
    assert_same(final_state_of(scene, EXAMPLE), alone)


@pytest.mark.parametrize(
    "write", [40, pytest.param(9, marks=pytest.mark.full("paused at another write; write 40 stands for it"))]
)
def test_a_leader_that_is_paused_in_mid_write(write: int, alone: FinalState) -> None:
    """Its write had left when it was paused, and arrives a minute late: after that it writes nothing any more."""
    scene = rehearsal_of(EXAMPLE, on_write=no_hook)
    second = Loop("second", scene)
    late: list[int] = []

    def pause(loop: Loop, request: LoggedRequest) -> None:
        if len(loop.writes) == write:
            loop.paused = True
            for _ in range(8):
                tick(scene, (second,))
            late.append(len(second.writes))
            loop.paused = False

    first = Loop("first", scene, pause)
    play(scene, first, second)
    assert late
    assert late[0] > 0
    assert len(first.writes) == write
    assert set(first.writes) == {"first"}
    assert set(second.writes) == {"second"}
    assert_same(final_state_of(scene, EXAMPLE), alone)


def test_a_leader_that_is_cut_off_stops_by_itself() -> None:
    scene = rehearsal_of(EXAMPLE, on_write=no_hook)
    first = Loop("first", scene)
    assert first.election.attempt()
    assert first.election.leads()
    scene.clock.advance(11)
    assert not first.election.leads()
    with pytest.raises(Away):
        first.reconciler.round(scene.name)
    assert first.writes == []


def test_a_stolen_lease_is_not_used_any_more() -> None:
    """Somebody wrote another holder into it: the loop stops as soon as it has seen that, not when its time is up."""
    scene = rehearsal_of(EXAMPLE, on_write=no_hook)
    first = Loop("first", scene)
    for _ in range(3):
        tick(scene, (first,))
    before = len(first.writes)
    thief = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 15}}
    scene.cluster.client().patch(LEASE, REF, thief)
    assert first.election.attempt() is False
    assert not first.election.leads()
    tick(scene, (first,))
    assert len(first.writes) == before
    for _ in range(5):  # the thief never renews: after its time the lease is free again
        tick(scene, (first,))
    assert first.election.leads()


def test_a_lease_that_was_given_up_is_free_at_once() -> None:
    scene = rehearsal_of(EXAMPLE, on_write=no_hook)
    first, second = Loop("first", scene), Loop("second", scene)
    tick(scene, (first, second))
    first.election.release()
    assert (first.election.leads(), holder(scene)) == (False, "")
    assert second.election.attempt()
    assert holder(scene) == "second"


def test_what_one_leader_has_missed_the_next_one_does_not_count() -> None:
    """Neither an outage that the first has seen, nor the time in which nobody led."""
    scene = rehearsal_of(EXAMPLE, on_write=no_hook)
    first, began = Loop("first", scene), scene.clock.now()
    first.election.attempt()
    assert OUTAGES not in lease_annotations(scene)
    client = first.client
    client.faults.away(600)
    first.election.attempt()
    assert first.election.why
    scene.clock.advance(600)
    for _ in range(2):  # it is found with the one, and told with the next
        first.election.attempt()
    assert attended(first, began) == 0
    scene.clock.advance(5)
    first.election.release()  # and then nobody is there for an hour
    scene.clock.advance(3600)
    second = Loop("second", scene)
    assert attended(second, began) == 4205
    assert second.election.attempt()
    assert attended(second, began) == 5
    scene.clock.advance(100)
    assert attended(second, began) == 105
    for _ in range(2):
        second.election.attempt()
    third = Loop("third", scene)
    second.election.release()
    assert third.election.attempt()
    assert attended(third, began) == 105


def test_what_is_no_outage_is_passed_over() -> None:
    scene = rehearsal_of(EXAMPLE, on_write=no_hook)
    first = Loop("first", scene)
    tick(scene, (first,))
    first.election.release()
    told = "x 2026-01-01T00:00:00/2026-01-02T00:00:00 2027-01-01T00:00:00+00:00/2026-01-01T00:00:00+00:00 a/b/c /"
    scene.cluster.client().patch(LEASE, REF, {"metadata": {"annotations": {OUTAGES: told}}})
    second = Loop("second", scene)
    assert second.election.attempt()
    assert attended(second, START) == (scene.clock.now() - START).total_seconds()


def test_an_outage_that_ends_in_the_future_ends_now() -> None:
    """A clock was ahead, here or where the leader before ran; time must not stand still until then."""
    now = [START]
    outage_clock = OutageClock(lambda: now[0])
    outage_clock.recall("2025-12-31T00:00:00+00:00/2099-01-01T00:00:00+00:00")
    outage_clock.lost()
    now[0] = START + timedelta(days=3650)
    outage_clock.found()
    now[0] = START + timedelta(hours=5)
    before = outage_clock.attended(START)
    now[0] += timedelta(hours=1)
    assert (before, outage_clock.attended(START)) == (0, 3600)


def attended(loop: Loop, since: datetime) -> float:
    return loop.outage_clock.attended(since)


def lease_annotations(scene: Rehearsal) -> Any:
    lease = scene.cluster.store.find(REF)
    assert lease is not None
    return lease["metadata"].get("annotations") or {}


def test_the_lease_changes_hands_again_and_again(alone: FinalState) -> None:
    scene = rehearsal_of(EXAMPLE, on_write=no_hook)
    loops = [Loop("first", scene), Loop("second", scene)]
    for number in range(4000):
        if number % 40 == 39:
            for loop in loops:
                loop.election.release()
            loops.reverse()
        tick(scene, tuple(loops))
        if any(loop.over for loop in loops):
            break
    settle(scene)
    assert all(set(loop.writes) == {loop.identity} for loop in loops)
    assert_same(final_state_of(scene, EXAMPLE), alone)
