"""Whatever Rancher, the hosts, the API server and the operators do, and in whatever order: what must hold, holds.

The machine plays everybody else by hand, one small move at a time, with rounds of the loop between; it begins when
Rancher has been told of the new version. At the end everybody does their part, and the plan must come to its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import product

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from support.examples import examples
from support.manual_actors import OUT, ManualActors
from support.rendered_plans import NODE_STATES, plan
from support.small_cluster import POST, POST_HOOK, PRE, PRE_HOOK, STRATEGY, upgrading

from reconcile.cluster.errors import ClusterError
from reconcile.decide.plan import is_over
from reconcile.objects import FIELD_MANAGER, NODE_LABEL, PLAN_LABEL
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from reconcile.status.plan import FAILED, SUCCEEDED
from reconcile.status.plan_body import status_of
from renderer.model.plan_api import PLAN_API_VERSION

pytestmark = pytest.mark.slow

EXAMPLES = 24
NODES, JOINS = ("n1", "n2", "n3"), "n4"
GONE, STUCK = "gone", "stuck"
PARTS = 60
"""How often everybody does their part after the last move; an upgrade needs about half of that."""
indexes = st.integers(0, 5)
often = st.sampled_from([False, True])
seldom = st.sampled_from([False, False, True, False, False])

READ = (ApiFault.THROTTLED, ApiFault.FAILED, ApiFault.AWAY, ApiFault.HANG)
WRITE = (*READ, ApiFault.CONFLICT, ApiFault.INVALID, ApiFault.LOST)
FAULTS = [(verb, each) for verb in ("get", "list") for each in (*READ, ApiFault.GONE)]
FAULTS += [(verb, each) for verb in ("patch", "apply", "delete", "create") for each in WRITE]
WHEN = ("before its turn", "while out", "after its turn")


class Upgrade(RuleBasedStateMachine):
    """`made` has the uid of each Job, `states` the nodes' as last seen, `held` the nodes that are paused in time."""

    def __init__(self, reached: Counter[str]) -> None:
        super().__init__()
        self.reached = reached
        self.found = upgrading(*NODES, states={})
        self.others = ManualActors(self.found)
        self.made: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self.held: set[str] = set()
        self.wrong: list[str] = []
        self.waits: list[str] = []
        self.deleted = False
        self.rival = False

    @initialize()
    def begin(self) -> None:
        self.found.set_status(currentPhase="ClusterUpgraded")
        self.found.rounds()
        self.found.end_plan("up-skip-manifest-apply")
        self.found.rounds()

    # -------------------------------------------------------------------------------------------------------- the loop

    @rule(times=st.integers(1, 4))
    def rounds(self, times: int) -> None:
        for _ in range(times):
            self.one_round()

    @rule(times=st.integers(1, 6))
    def everybody_goes_on(self, times: int) -> None:
        for _ in range(times):
            self.one_part()

    @rule()
    def restart(self) -> None:
        self.found.restart()

    @rule(fault=st.sampled_from(FAULTS), skip=indexes)
    def fault(self, fault: tuple[str, ApiFault], skip: int) -> None:
        verb, trouble = fault
        self.found.scene.client.faults.add(InjectedApiFault(trouble=trouble, verb=verb, skip=skip))

    @rule()
    def the_server_is_away(self) -> None:
        self.found.scene.client.faults.away(60)
        self.one_round()
        self.found.scene.clock.advance(61)

    # -------------------------------------------------------------------------------------------------- everybody else

    @rule()
    def plans_complete(self) -> None:
        self.others.plans_complete()

    @rule(number=indexes)
    def rancher_goes_on(self, number: int) -> None:
        self.others.rancher_goes_on(number)

    @rule(number=indexes)
    def rancher_asks_again(self, number: int) -> None:
        self.others.rancher_asks_again(number)

    @rule(number=indexes)
    def rancher_begins_with_another(self, number: int) -> None:
        self.others.rancher_picks(number)

    @precondition(lambda self: self.others.running())
    @rule(number=indexes)
    def a_job_ends(self, number: int) -> None:
        self.others.job_ends(number)

    @precondition(lambda self: not self.others.failed | self.others.lost)
    @rule(really=often, how=st.sampled_from([ManualActors.job_is_deleted, ManualActors.job_fails]))
    def the_next_job_goes_wrong(self, really: bool, how: Callable[[ManualActors], None]) -> None:
        for _ in range(8 if really else 0):
            if self.others.running():
                how(self.others)
                break
            self.one_part(jobs=False)

    @rule(number=indexes)
    def a_host_reboots(self, number: int) -> None:
        names = self.others.nodes()
        self.others.host_reboots(names[number % len(names)])

    # ------------------------------------------------------------------------------------------------------- operators

    @precondition(lambda self: self.there())
    @rule(names=st.sets(st.sampled_from((*NODES, JOINS))))
    def pause(self, names: set[str]) -> None:
        self.found.patch(self.found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": sorted(names)}}})
        self.held = {name for name in names if not NODE_STATES.is_ahead(self.found.state(name), "UpgradePaused")}

    @rule(number=indexes)
    def an_ended_job_is_deleted_by_hand(self, number: int) -> None:
        self.others.ended_job_is_deleted(number)

    @rule()
    def a_second_plan(self) -> None:
        if not self.rival:
            self.found.create(plan("rival"))
            self.rival = True
        with suppress(ClusterError):
            self.found.scene.reconciler.round("rival")
        if not self.is_over():
            self.reached["second plan"] += 1
            self.wrong += [f"{name} is of the second plan" for name in self._owned_by("rival")]

    @precondition(lambda self: self.there() and JOINS not in {*self.others.nodes(), *self.others.left})
    @rule(really=often)
    def a_node_joins(self, really: bool) -> None:
        if really:
            self.others.node_joins(JOINS)
            self.reached["joined"] += 1

    @precondition(lambda self: self.there() and len(self.others.nodes()) > 1 and not self.others.stragglers)
    @rule(when=st.sampled_from(WHEN), first=st.sampled_from(["Node", "Machine"]))
    def a_node_leaves(self, when: str, first: str) -> None:
        names = [name for name in self.others.nodes() if _when(self.found.state(name)) == when]
        if names:
            self.others.node_leaves(names[0], first)
            self.reached[f"left {when}"] += 1

    @rule()
    def the_rest_of_it_goes(self) -> None:
        self.others.the_rest_goes()

    @precondition(lambda self: self.there() and not self.deleted)
    @rule(really=seldom)
    def the_plan_is_deleted(self, really: bool) -> None:
        if really:
            allowed = {"management.harvesterhci.io/allow-deletion": "true"}
            self.found.patch(self.found.plan, {"metadata": {"annotations": allowed}})
            self.found.delete_plan()
            self.deleted = True

    # ------------------------------------------------------------------------------------------------------ what holds

    @invariant()
    def nodes_only_move_forward(self) -> None:
        entries = self.found.status.get("nodeUpgradeStatuses") or {} if self.there() else {}
        for name, entry in entries.items():
            before, state = self.states.get(name, ""), str(entry["state"])
            assert state in NODE_STATES
            assert not NODE_STATES.is_ahead(before, state), f"{name} went from {before} to {state}"
            self.states[name] = state

    @invariant()
    def one_node_is_out_at_most(self) -> None:
        out = [name for name in self.others.nodes() if self.states.get(name) in OUT]
        assert len(out) <= 1, out

    @invariant()
    def answers_are_earned(self) -> None:
        """After our own Job, after the drain also after the boot; and each is what Rancher wrote."""
        for name in filter(self.others.has_secret, (*NODES, JOINS)):
            for key, hook, job in ((PRE, PRE_HOOK, "pre-drain"), (POST, POST_HOOK, "post-drain")):
                answer = self.found.annotation(name, hook)
                if answer is not None:
                    assert answer in self.others.asked[name, key]
                    assert f"up-node-upgrade-{job}-{name}" in self.others.succeeded
                    assert job == "pre-drain" or name in self.others.booted

    @invariant()
    def nothing_was_made_that_must_not_be(self) -> None:
        assert self.wrong == []

    @invariant()
    def what_was_borrowed_is_back_at_the_end(self) -> None:
        if not self.there() or self.found.phase == SUCCEEDED:
            cluster = self.found.get("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")
            assert cluster["spec"]["rkeConfig"]["upgradeStrategy"] == STRATEGY
            name = "replica-replenishment-wait-interval"
            assert self.found.get("longhorn.io/v1beta2", "Setting", name, "longhorn-system")["value"] == "600"

    # --------------------------------------------------------------------------------------------------------- the end

    def teardown(self) -> None:
        """Nothing goes wrong any more, nobody is held, everybody does their part: then the plan comes to its end."""
        self.found.scene.client.faults.clear()
        if self.there():
            self.found.patch(self.found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": []}}})
            self.held = set()
        self._play_out()
        ending = self._ending()
        self.reached[ending] += 1
        if ending in (FAILED, STUCK):
            self.found.delete_plan()
            self._play_out()
            assert not self.there(), self.waits
        self._nothing_is_left()

    def _ending(self) -> str:
        """How it ended, and that there is a reason. A Job that was deleted while it ran is not made again: once is
        once, and the operator has to decide."""
        if not self.there():
            assert self.deleted
            return GONE
        if not self.is_over():
            lost = [f"Job harvester-system/{name} does not exist" for name in self.others.lost]
            assert set(lost) & set(self.waits), self.waits
            return STUCK
        assert not self.deleted
        assert self.found.phase == SUCCEEDED or self.others.failed
        return self.found.phase

    def _play_out(self) -> None:
        for _ in range(PARTS):
            self.one_part()
            if self.is_over() and not self.others.running():
                return

    def _nothing_is_left(self) -> None:
        """No object of the plan's, and no claim on one of somebody else's."""
        assert [name for name in self._owned_by("up") if "restore-vm" not in name] == []
        claimed = [
            f"{body['kind']} {body['metadata']['name']}"
            for body in self.found.scene.cluster.store.everything()
            if FIELD_MANAGER in {entry["manager"] for entry in body["metadata"].get("managedFields") or ()}
            and body["kind"] not in ("UpgradePlan", "Event")
        ]
        assert claimed == []

    # --------------------------------------------------------------------------------------------------------- support

    def there(self) -> bool:
        return self.found.get(PLAN_API_VERSION, "UpgradePlan", "up") is not None

    def is_over(self) -> bool:
        return not self.there() or is_over(status_of(self.found.plan))

    def one_part(self, *, jobs: bool = True) -> None:
        self.others.do_their_part(jobs=jobs)
        self.one_round()
        self.one_round()
        self.found.scene.clock.advance(10)

    def one_round(self) -> None:
        """One round, and what must hold after it."""
        with suppress(ClusterError):
            done = self.found.round()
            self.waits = [*done.problems, *(wait.text for wait in done.decision.waits)] if done.decision else []
        self.found.scene.cluster.collect()
        self._look()
        for holds in (self.nodes_only_move_forward, self.one_node_is_out_at_most, self.answers_are_earned):
            holds()

    def _look(self) -> None:
        """Notes every Job that is there: one with another uid was made twice."""
        for body in self.found.all("Job"):
            metadata = body["metadata"]
            name, uid, node = metadata["name"], metadata["uid"], metadata["labels"].get(NODE_LABEL)
            if self.made.get(name, uid) != uid:
                self.wrong.append(f"{name} was made twice")
            elif name not in self.made and node in self.held:
                self.wrong.append(f"{name} was made while {node} was held")
            self.made[name] = uid

    def _owned_by(self, name: str) -> list[str]:
        return [
            f"{body['kind']} {body['metadata']['name']}"
            for body in self.found.scene.cluster.store.everything()
            if (body["metadata"].get("labels") or {}).get(PLAN_LABEL) == name
        ]


def _when(state: str | None) -> str:
    begun, out = NODE_STATES.is_ahead(state, "UpgradePaused"), state in OUT
    return WHEN[begun + (begun and not out)]


def test_whatever_happens() -> None:
    reached: Counter[str] = Counter()
    run_state_machine_as_test(
        lambda: Upgrade(reached),  # type: ignore[arg-type]  # it calls it; a class is not asked for
        settings=settings(
            max_examples=examples(EXAMPLES),
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            phases=[Phase.explicit, Phase.generate],  # a failure is told at once; shrinking one takes minutes
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
    assert min(reached[SUCCEEDED], reached[GONE], reached["joined"], reached["second plan"]) > 0, reached


Edit = Callable[[Upgrade], object]

STATES = ("ImagePreloaded", "PreDraining", "PreDrained", "PostDraining", "WaitingReboot", "PostDrained")
EDITS: Mapping[str, tuple[Edit, str]] = {
    "nothing": (lambda machine: None, SUCCEEDED),
    "the node leaves": (lambda machine: machine.others.node_leaves("n1", "Node"), SUCCEEDED),
    "its machine leaves first": (lambda machine: machine.others.node_leaves("n1", "Machine"), SUCCEEDED),
    "another joins": (lambda machine: machine.others.node_joins(JOINS), SUCCEEDED),
    "all are paused": (lambda machine: machine.pause(names={*NODES}), SUCCEEDED),
    "a second plan": (lambda machine: machine.a_second_plan(), SUCCEEDED),
    "an ended Job is deleted": (lambda machine: machine.others.ended_job_is_deleted(0), SUCCEEDED),
    "the plan is deleted": (lambda machine: machine.the_plan_is_deleted(really=True), GONE),
}
WRONG: Mapping[str, tuple[Edit, str]] = {
    "the Job fails": (lambda machine: machine.others.job_fails(), FAILED),
    "the Job is deleted": (lambda machine: machine.others.job_is_deleted(), STUCK),
}
COURSES = [
    *product(STATES, EDITS.items()),
    *product(("PreDraining", "PostDraining"), WRONG.items()),
]
SHORT = ("PreDraining", *product(("WaitingReboot",), ("the node leaves", "another joins", "the plan is deleted")))
"""A node that is about to be drained; of those at one that is out, what changes nodes and plan."""
LATE = pytest.mark.full(
    "edits at the other states of a node; all of them at a node that is about to be drained, and three at one that is "
    "out, stand for them"
)


@pytest.mark.parametrize(
    ("state", "course"),
    [
        pytest.param(*each, marks=[] if each[0] in SHORT or (each[0], each[1][0]) in SHORT else [LATE])
        for each in COURSES
    ],
    ids=lambda part: part if isinstance(part, str) else part[0],
)
def test_each_edit_at_each_state(state: str, course: tuple[str, tuple[Edit, str]]) -> None:
    """Those that chance might leave out, by the same machine: what must hold is looked at after each round."""
    _, (edit, ending) = course
    machine = Upgrade(Counter())
    machine.begin()
    _reach(machine, state)
    edit(machine)
    for _ in range(3):
        machine.one_round()
    machine.teardown()
    assert machine.reached[ending] == 1


def _reach(machine: Upgrade, state: str) -> None:
    """Node n1 comes to this state, and what the state begins with is done."""
    others = machine.others
    moves: tuple[Callable[[], object], ...] = (
        others.rancher_goes_on,
        others.job_ends,
        lambda: others.host_reboots("n1"),
    )
    for move in moves * 4:  # one round more for each Job before which a value is recorded
        if machine.found.state("n1") != state:
            move()
            machine.one_round()
    assert machine.found.state("n1") == state
    machine.one_round()
