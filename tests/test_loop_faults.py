"""Every verb meets every trouble during a three-node upgrade, again and again: the end is the same as undisturbed.

One play has one kind of trouble, at every so many requests of each verb.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from endings import End, assert_same, end_of
from theatre import play_through_kills, theatre

from reconcile.rehearsal.faults import Fault, Trouble

EXAMPLE = "three-node"

EVERY = {"get": 397, "list": 131, "read": 5, "patch": 11, "apply": 4, "create": 5, "delete": 4}
"""At every so many requests of a verb, so that it strikes in every phase."""

WRITES = ("patch", "apply", "create", "delete")
CASES = {
    Trouble.THROTTLED: tuple(EVERY),
    Trouble.FAILED: tuple(EVERY),
    Trouble.AWAY: tuple(EVERY),
    Trouble.HANG: tuple(EVERY),
    Trouble.CONFLICT: WRITES,
    Trouble.INVALID: WRITES,
    Trouble.LOST: WRITES,
    Trouble.GONE: ("get", "list"),
}
_PLENTY = 40


def strikes(trouble: Trouble, verb: str) -> Iterator[Fault]:
    """One at every so many requests: those that wait count each request that met none before them."""
    for number in range(1, _PLENTY + 1):
        yield Fault(trouble=trouble, verb=verb, skip=number * (EVERY[verb] - 1), seconds=7)


@pytest.fixture(scope="module")
def undisturbed() -> End:
    scene = theatre(EXAMPLE)
    play_through_kills(scene)
    return end_of(scene, EXAMPLE)


@pytest.mark.parametrize("trouble", CASES, ids=lambda trouble: trouble.name.lower())
def test_trouble_on_every_verb(trouble: Trouble, undisturbed: End) -> None:
    scene = theatre(EXAMPLE)
    scene.client.faults.add(*(fault for verb in CASES[trouble] for fault in strikes(trouble, verb)))
    play_through_kills(scene)
    left = Counter(fault.verb for fault in scene.client.faults.pending)
    assert [verb for verb in CASES[trouble] if left[verb] == _PLENTY] == [], "these met nothing"
    scene.client.faults.clear()
    assert_same(end_of(scene, EXAMPLE), undisturbed)


@pytest.mark.parametrize("every", [7])
def test_the_server_is_away_for_a_minute_now_and_then(every: int, undisturbed: End) -> None:
    """At every so many writes, just after they are carried out: their answers are lost as well."""
    struck = Counter[str]()

    def strike(request: Any, moment: Any) -> None:
        struck[moment.value] += 1
        if moment.value == "after" and struck["after"] % every == 0:
            scene.client.faults.away(60)

    scene = theatre(EXAMPLE, on_write=strike)
    play_through_kills(scene)
    assert struck["after"] > 3 * every
    assert_same(end_of(scene, EXAMPLE), undisturbed)
