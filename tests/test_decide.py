"""`decide` is pure: it changes nothing that it is given, says the same twice, and needs no memory of the loop's."""

from __future__ import annotations

import copy
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from support.recordings import recording
from support.small_cluster import PRE, Small, waiting_for_rancher, world

import reconcile.loop.plan_round as loop
from reconcile.decide.decision import Decision, SetFinalizer
from reconcile.decide.decision_cache import DecisionCache
from reconcile.decide.observation import Observation
from reconcile.decide.plan import decide
from reconcile.probes.look import Group, ReadFailure
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from renderer.model.ref import Body


@pytest.fixture
def worlds(monkeypatch: pytest.MonkeyPatch) -> list[Observation]:
    """Every world that a decision is made of from now on."""
    seen: list[Observation] = []

    def watched(given: Observation, cache: DecisionCache | None = None) -> Decision:
        seen.append(given)
        return decide(given, cache)

    monkeypatch.setattr(loop, "decide", watched)
    return seen


def draining() -> Small:
    found = waiting_for_rancher()
    found.ask("n1", PRE, "x")
    found.rounds()
    return found


@pytest.mark.slow
def test_it_changes_nothing_and_says_the_same_twice(worlds: list[Observation]) -> None:
    draining()
    assert len(worlds) >= 3
    for given in worlds:
        plan, passes = copy.deepcopy(given.plan), dict(given.passes)
        first, second = decide(given), decide(given)
        assert first == second
        assert (given.plan, given.passes) == (plan, passes)
        assert repr(first) == repr(second)


@pytest.mark.slow
def test_a_round_without_news_decides_nothing(worlds: list[Observation]) -> None:
    draining()
    last = decide(worlds[-1])
    assert (last.actions, last.events, last.again) == ((), (), False)
    assert last.waits


@pytest.mark.slow
def test_a_wait_that_takes_too_long_is_said_and_is_no_failure(worlds: list[Observation]) -> None:
    draining()
    late = replace(worlds[-1], now=worlds[-1].now + timedelta(hours=2), attended=lambda since: 7200.0)
    found = decide(late)
    degraded: Any = found.status.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "WaitingLong")
    assert "pre-drain-n1" in degraded["message"]
    assert found.status.phase == "NodeUpgrading"


@pytest.mark.slow
def test_time_that_the_server_was_away_does_not_count(worlds: list[Observation]) -> None:
    draining()
    late = replace(worlds[-1], now=worlds[-1].now + timedelta(hours=2), attended=lambda since: 60.0)
    degraded: Any = decide(late).status.condition("Degraded")
    assert degraded["status"] == "False"


@pytest.mark.slow
def test_errors_of_the_last_round_are_said(worlds: list[Observation]) -> None:
    draining()
    degraded: Any = decide(replace(worlds[-1], errors=("it was refused",))).status.condition("Degraded")
    assert (degraded["reason"], degraded["message"]) == ("ReconcileError", "it was refused")


def test_a_rendering_that_nobody_approved_is_not_entered(worlds: list[Observation]) -> None:
    """The digest that was approved is not what would run now: the phase is not entered, and both are named."""
    found = world()
    found.rounds()
    given = next(item for item in worlds if not (item.plan.get("status") or {}).get("currentPhase"))
    refused = decide(replace(given, approved={"Initialize": "sha256:a"}, sealed={"Initialize": "sha256:b"}))
    assert refused.status.phase == ""
    assert "sha256:a" in refused.waits[0].text
    assert "sha256:b" in refused.waits[0].text
    agreed = decide(replace(given, approved={"Initialize": "sha256:a"}, sealed={"Initialize": "sha256:a"}))
    assert agreed.status.phase == "Initializing"
    assert agreed.actions == (SetFinalizer(present=True),)


@pytest.mark.slow
def test_a_plan_goes_only_after_its_traces_could_be_searched_for(worlds: list[Observation]) -> None:
    found = draining()
    found.delete_plan()
    found.rounds()
    found.end_plan("up-skip-manifest-remove")
    assert found.rounds().over
    last, read_failures = worlds[-1], ReadFailure(why="forbidden")
    assert gone(decide(last))

    class NodesUnreadable:
        def __getattr__(self, name: str) -> Any:
            return getattr(last.look, name)

        def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
            return read_failures if group.kind == "Node" else last.look.list(group)

    blind = decide(replace(last, look=NodesUnreadable()))
    assert not gone(blind)
    mark = 'metadata.labels["plan.upgrade.cattle.io/up-skip-manifest-apply"]'
    assert f"Node objects cannot be listed, to remove {mark}: forbidden" in [wait.text for wait in blind.waits]


def gone(found: Decision) -> bool:
    return SetFinalizer(present=False) in found.actions


def test_a_plan_that_could_not_be_read_is_not_gone() -> None:
    found = world()
    found.scene.client.faults.add(InjectedApiFault(trouble=ApiFault.FAILED, verb="list", kind="UpgradePlan"))
    done = found.round()
    assert done.problems
    assert not done.over
    assert done.recheck


def test_a_plan_whose_finalizer_could_not_be_removed_is_not_over() -> None:
    found = world()
    found.set_status(currentPhase="CleanedUp")
    found.until(lambda done: done.decision is not None and SetFinalizer(present=True) in done.decision.actions)
    skip = 1  # the status of the last round
    conflict = InjectedApiFault(trouble=ApiFault.CONFLICT, verb="patch", kind="UpgradePlan", skip=skip)
    found.scene.client.faults.add(conflict)
    refused = found.until(lambda done: bool(done.problems))
    assert (found.phase, refused.over) == ("Succeeded", False)
    assert found.rounds().over
    assert "finalizers" not in found.plan["metadata"]


@pytest.mark.slow
@pytest.mark.lane("recordings")
@pytest.mark.parametrize(
    ("example", "faults"),
    [
        ("three-node", {}),
        pytest.param(
            "three-node",
            {"repeat": ("pre-drain",)},
            marks=pytest.mark.full("drains that Rancher asks for again; those that it asks for once stand for them"),
        ),
    ],
)
def test_what_is_kept_from_earlier_decisions_changes_none(example: str, faults: dict[str, tuple[str, ...]]) -> None:
    """Each decision of a whole upgrade, made again without what was kept. It asks for no other times either."""
    entries = recording(example, **faults).entries
    cache = DecisionCache()
    for entry in entries:
        observation = replace(entry.seen.observation, attended=dict(entry.seen.attended.asked).__getitem__)
        assert decide(observation) == entry.decision
        assert decide(observation, cache) == entry.decision
    assert cache.nodes


@pytest.mark.slow
def test_a_node_is_decided_again_when_anything_has_changed_that_it_looks_at(worlds: list[Observation]) -> None:
    """The same world twice is taken over; a Secret that Rancher has written to since is not."""
    found = waiting_for_rancher()
    cache, before = DecisionCache(), worlds[-1]
    first = decide(before, cache)
    assert [wait.node for wait in first.waits] == ["n1", "n2"]
    taken = dict(cache.nodes)
    assert decide(before, cache) == first
    assert all(cache.nodes[place] is decision for place, decision in taken.items())
    found.ask("n1", PRE, "x")
    rounds = len(worlds)
    found.rounds()
    asked = decide(worlds[rounds], cache)
    assert asked == decide(worlds[rounds])
    assert [wait.node for wait in asked.waits] == ["n2"]
    kept = [place for place, decision in taken.items() if cache.nodes.get(place) is decision]
    assert [node for _, node, first_step in kept if first_step == "SingleNode"] == ["n2"]
