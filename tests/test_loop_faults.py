"""Every verb meets every trouble during a three-node upgrade, again and again: the end is the same as undisturbed.

One play has one kind of trouble, at every so many requests of each verb.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, product

import pytest
from support.final_state import FinalState, assert_same, final_state_of
from support.recordings import undisturbed_end
from support.rehearsals import play_through_kills, rehearsal_of

from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from reconcile.simulator.apiserver.requests import Hook, LoggedRequest, Moment
from reconcile.simulator.rehearsal.rehearsal import Rehearsal

pytestmark = [pytest.mark.slow, pytest.mark.lane("recordings")]

EXAMPLE = "three-node"

READS, WRITES = ("watch", "list", "read"), ("patch", "apply", "create", "delete")
VERBS = (*READS, *WRITES)
Every = Mapping[str, int]
"""At every so many requests of a verb, so that it strikes in every phase."""
EVERY: Every = {"watch": 89, "list": 5, "read": 5, "patch": 11, "apply": 4, "create": 5, "delete": 4}

IMPOSSIBLE: Mapping[tuple[ApiFault, str], str] = {
    **dict.fromkeys(product([ApiFault.CONFLICT], READS), "a read has no precondition"),
    **dict.fromkeys(product([ApiFault.INVALID], READS), "a read has no body"),
    **dict.fromkeys(product([ApiFault.LOST], READS), "nothing was carried out, so it is as AWAY"),
    **dict.fromkeys(product([ApiFault.CUT], VERBS[1:]), "only a watch is a stream"),
    **dict.fromkeys(product([ApiFault.GONE], ("read", *WRITES)), "only a watch asks for history"),
    (ApiFault.GONE, "list"): "the client itself asks again in one piece, which cannot be too old",
}
"""What no server answers, and why."""

SHORT = (ApiFault.CONFLICT,)
"""One that refuses a write. The outages below hide whether a write was carried out."""
LATE = pytest.mark.full(
    "each kind of trouble alone, all through an upgrade; conflicts, outages in which answers are lost, a compacted "
    "history, and all kinds at random in test_loop_properties.py stand for it"
)
THREE_NODES = pytest.param(
    EXAMPLE, marks=pytest.mark.full("outages and a compacted history with three nodes; with one node they stand for it")
)
SECONDS = {ApiFault.OUTAGE: 60.0, ApiFault.HANG: 30.0}
_PLENTY = 40


def verbs_that_meet(trouble: ApiFault) -> Sequence[str]:
    return [verb for verb in VERBS if (trouble, verb) not in IMPOSSIBLE]


def strikes(trouble: ApiFault, verb: str, every: Every) -> Iterator[InjectedApiFault]:
    """One at every so many requests: those that wait count each request that met none before them."""
    for number in range(1, _PLENTY + 1):
        skip, seconds = number * (every[verb] - 1), SECONDS.get(trouble, 7.0)
        yield InjectedApiFault(trouble=trouble, verb=verb, skip=skip, seconds=seconds)


@pytest.fixture(scope="module")
def undisturbed() -> FinalState:
    return undisturbed_end(EXAMPLE)


def struck(scene: Rehearsal, troubles: Sequence[tuple[ApiFault, str]], every: Every) -> Rehearsal:
    """The scene played to its end, with these troubles; each verb has met one of its own."""
    faults = scene.client.faults
    faults.add(*(fault for trouble, verb in troubles for fault in strikes(trouble, verb, every)))
    play_through_kills(scene)
    left = Counter((fault.trouble, fault.verb) for fault in faults.pending)
    assert [each for each in troubles if left[each] == _PLENTY] == [], "these met nothing"
    faults.clear()
    return scene


@pytest.mark.parametrize(
    "trouble",
    [pytest.param(each, marks=[] if each in SHORT else [LATE], id=each.name.lower()) for each in ApiFault],
)
def test_trouble_on_every_verb(trouble: ApiFault, undisturbed: FinalState) -> None:
    scene = struck(rehearsal_of(EXAMPLE), [(trouble, verb) for verb in verbs_that_meet(trouble)], EVERY)
    assert_same(final_state_of(scene, EXAMPLE), undisturbed)


def test_every_combination_is_met_or_impossible() -> None:
    """A trouble that nobody meets would be a play without trouble."""
    assert [trouble for trouble in ApiFault if not verbs_that_meet(trouble)] == []
    assert set(IMPOSSIBLE) < set(product(ApiFault, VERBS))


def every_so_many_writes(every: int, strike: Callable[[], None]) -> Hook:
    """Strikes just after a write was carried out."""
    writes = count(1)

    def hook(request: LoggedRequest, moment: Moment) -> None:
        if moment is Moment.AFTER and next(writes) % every == 0:
            strike()

    return hook


@pytest.mark.parametrize("example", ["single-node", THREE_NODES])
def test_the_server_is_away_for_a_minute_now_and_then(example: str) -> None:
    """The answers of those writes are lost as well."""
    outages: list[float] = []

    def strike() -> None:
        outages.append(60)
        scene.client.faults.away(60)

    scene = rehearsal_of(example, on_write=every_so_many_writes(7, strike))
    play_through_kills(scene)
    assert len(outages) > 10
    assert_same(final_state_of(scene, example), undisturbed_end(example))


@pytest.mark.parametrize("example", ["single-node", THREE_NODES])
def test_the_history_is_compacted_now_and_then(example: str) -> None:
    """No watch can go on from where it was: each gets that answer until it has listed again."""
    scene = rehearsal_of(example, on_write=every_so_many_writes(5, lambda: scene.cluster.compact()))
    play_through_kills(scene)
    assert Counter(request.verb for request in scene.client.log.requests)["list"] > 100
    assert_same(final_state_of(scene, example), undisturbed_end(example))
