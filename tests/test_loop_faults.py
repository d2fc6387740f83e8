"""Every verb meets every trouble during a three-node upgrade, again and again: the end is the same as undisturbed.

One play has one kind of trouble, at every so many requests of each verb.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from theatre import final_objects, jobs_started, play_through_kills, theatre

from reconcile.actors.invariants import violations
from reconcile.rehearsal.client import no_hook
from reconcile.rehearsal.faults import Fault, Trouble
from reconcile.rehearse.rehearsal import Theatre

EVERY = {"get": 397, "list": 131, "read": 5, "patch": 11, "apply": 4, "create": 5, "delete": 4}
"""At every so many requests of a verb, so that it strikes in every phase."""

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ( \d+s)?")
"""As it stands in the texts of steps that are over."""

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
def undisturbed() -> dict[str, Any]:
    scene = theatre("three-node", on_write=no_hook)
    play_through_kills(scene)
    return end_of(scene)


def end_of(scene: Theatre) -> dict[str, Any]:
    return {"objects": final_objects(scene), "jobs": sorted(jobs_started(scene))}


def timeless(value: Any) -> Any:
    """Without Rancher's own times either: an outage shifts them."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key != "lastUpdateTime"}
    if isinstance(value, list):
        return [timeless(item) for item in value]
    return TIME.sub("then", value) if isinstance(value, str) else value


def same(scene: Theatre, undisturbed: dict[str, Any]) -> None:
    assert not violations(scene.ledger.facts)
    assert [job for job, count in Counter(jobs_started(scene)).items() if count > 1] == []
    found = end_of(scene)
    assert found["jobs"] == undisturbed["jobs"]
    assert sorted(found["objects"]) == sorted(undisturbed["objects"])
    for name, body in undisturbed["objects"].items():
        assert timeless(found["objects"][name]) == timeless(body), name


@pytest.mark.parametrize("trouble", CASES, ids=lambda trouble: trouble.name.lower())
def test_trouble_on_every_verb(trouble: Trouble, undisturbed: dict[str, Any]) -> None:
    scene = theatre("three-node", on_write=no_hook)
    scene.client.faults.add(*(fault for verb in CASES[trouble] for fault in strikes(trouble, verb)))
    play_through_kills(scene)
    left = Counter(fault.verb for fault in scene.client.faults.pending)
    assert [verb for verb in CASES[trouble] if left[verb] == _PLENTY] == [], "these met nothing"
    scene.client.faults.clear()
    same(scene, undisturbed)


@pytest.mark.parametrize("every", [7])
def test_the_server_is_away_for_a_minute_now_and_then(every: int, undisturbed: dict[str, Any]) -> None:
    """At every so many writes, just after they are carried out: their answers are lost as well."""
    struck = Counter[str]()

    def strike(request: Any, moment: Any) -> None:
        struck[moment.value] += 1
        if moment.value == "after" and struck["after"] % every == 0:
            scene.client.faults.away(60)

    scene = theatre("three-node", on_write=strike)
    play_through_kills(scene)
    assert struck["after"] > 3 * every
    same(scene, undisturbed)
