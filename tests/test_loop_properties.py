"""Whatever Rancher, the hosts, the API server and the operator do, and in whatever order: what must hold, holds.

The machine plays everybody else by hand, one small move at a time, with rounds of the loop between; it begins when
Rancher has been told of the new version.
"""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from loop_world import POST, POST_HOOK, PRE, PRE_HOOK, STRATEGY, Small, node, upgrading
from rendering import machine, machine_plan, plan

from reconcile.cluster.errors import ClusterError
from reconcile.decide.plan import SUCCEEDED
from reconcile.rehearsal.faults import Fault, Trouble
from reconcile.status.nodes import ORDINALS

NODES = ("n1", "n2")
OUT = ("PreDraining", "PreDrained", "PostDraining", "WaitingReboot")
indexes = st.integers(0, 5)


class Upgrade(RuleBasedStateMachine):
    """`asked` is the node that Rancher is busy with; `succeeded` the Jobs that ended well; `booted` who came back."""

    found: Small

    @initialize()
    def begin(self) -> None:
        self.found = upgrading(*NODES, states={})
        self.found.set_status(currentPhase="ClusterUpgraded")
        self.found.rounds()
        self.found.end_plan("up-skip-manifest-apply")
        self.found.rounds()
        self.turn: str | None = None
        self.done: set[str] = set()
        self.succeeded: set[str] = set()
        self.booted: set[str] = set()
        self.removed: set[str] = set()
        self.made: dict[str, str] = {}
        self.twice: list[str] = []
        self.states: dict[str, str] = {}
        self.values = 0
        self.deleted = False

    # -------------------------------------------------------------------------------------------------------- the loop

    @rule(times=st.integers(1, 4))
    def rounds(self, times: int) -> None:
        for _ in range(times):
            try:
                self.found.round()
            except ClusterError:
                continue
            self.found.scene.cluster.collect()
            self._look()

    @rule()
    def restart(self) -> None:
        self.found.restart()

    @rule(
        trouble=st.sampled_from([Trouble.CONFLICT, Trouble.FAILED, Trouble.LOST, Trouble.THROTTLED, Trouble.AWAY]),
        verb=st.sampled_from(["get", "patch", "apply", "delete"]),
        skip=st.integers(0, 3),
    )
    def fault(self, trouble: Trouble, verb: str, skip: int) -> None:
        if verb != "get" or trouble not in (Trouble.CONFLICT, Trouble.LOST):
            self.found.scene.client.faults.add(Fault(trouble=trouble, verb=verb, skip=skip))

    # ------------------------------------------------------------------------------------------ everybody else

    @rule()
    def plans_complete(self) -> None:
        for body in self.found.all("Plan"):
            self.found.end_plan(body["metadata"]["name"])

    @rule(number=indexes)
    def rancher_goes_on(self, number: int) -> None:
        """Picks a machine, asks before the drain, asks after it, takes it back: each once the answer is there."""
        if self.turn is None:
            left = [name for name in self.nodes() if name not in self.done]
            if left and (self.found.status.get("provisionGeneration") or 0) > 0:
                self.turn = left[number % len(left)]
                self._ask(PRE)
        elif self._answered(POST, POST_HOOK):
            self.found.ask(self.turn, PRE, None)
            self.found.ask(self.turn, POST, None)
            self.done.add(self.turn)
            self.turn = None
        elif self._answered(PRE, PRE_HOOK) and self.found.annotation(self.turn, POST) is None:
            self._ask(POST)

    @precondition(lambda self: self.turn is not None)
    @rule()
    def rancher_asks_anew(self) -> None:
        self._ask(POST if self.found.annotation(str(self.turn), POST) else PRE)

    @rule(number=indexes, failed=st.sampled_from([False] * 9 + [True]))
    def a_job_ends(self, number: int, failed: bool) -> None:
        running = [body for body in self.found.all("Job") if not (body.get("status") or {}).get("conditions")]
        if running:
            name = running[number % len(running)]["metadata"]["name"]
            self.found.end_job(name, failed=failed, message="no")
            if not failed:
                self.succeeded.add(name)
            self._look()

    @rule(number=indexes)
    def a_host_reboots(self, number: int) -> None:
        name = self.nodes()[number % len(self.nodes())]
        if f"up-node-upgrade-post-drain-{name}" in self.succeeded and name not in self.booted:
            self.found.reboot(name)
            self.booted.add(name)

    # ------------------------------------------------------------------------------------------ the operator

    @precondition(lambda self: not self.deleted)
    @rule(names=st.sets(st.sampled_from(NODES)))
    def pause(self, names: set[str]) -> None:
        self.found.patch(self.found.plan, {"spec": {"nodeUpgradeOption": {"pauseNodes": sorted(names)}}})

    @rule(number=indexes)
    def a_job_is_deleted_by_hand(self, number: int) -> None:
        jobs = self.found.all("Job")
        if jobs:
            store = self.found.scene.cluster.store
            with store.changed:
                store.remove(jobs[number % len(jobs)])

    @rule()
    def a_second_plan(self) -> None:
        if not [body for body in self.found.all("UpgradePlan") if body["metadata"]["name"] == "rival"]:
            self.found.create(plan("rival"))
        try:
            self.found.scene.reconciler.round("rival")
        except ClusterError:
            return

    @precondition(lambda self: not self.deleted and len(self.found.all("Node")) < 3)
    @rule()
    def a_node_joins(self) -> None:
        self.found.scene.cluster.seed([node("n3"), machine("m-n3", "n3"), machine_plan("p-n3", "m-n3")])

    @precondition(lambda self: len(self.done) > 0)
    @rule(number=st.integers(0, 30))
    def the_plan_is_deleted(self, number: int) -> None:
        if number == 0 and not self.deleted:
            self.found.delete_plan()
            self.deleted = True

    # ------------------------------------------------------------------------------------------------------- what holds

    @invariant()
    def nodes_only_move_forward(self) -> None:
        if not hasattr(self, "found") or not self.there():
            return
        for name, entry in (self.found.status.get("nodeUpgradeStatuses") or {}).items():
            before, state = self.states.get(name, ""), str(entry["state"])
            assert ORDINALS.get(before, -1) <= ORDINALS[state], f"{name} went from {before} to {state}"
            self.states[name] = state

    @invariant()
    def one_node_is_out_at_most(self) -> None:
        if hasattr(self, "found"):
            assert len([name for name, state in self.states.items() if state in OUT]) <= 1

    @invariant()
    def answers_are_earned(self) -> None:
        for name in self.nodes() if hasattr(self, "found") else ():
            if self.found.annotation(name, PRE_HOOK):
                assert f"up-node-upgrade-pre-drain-{name}" in self.succeeded
            if self.found.annotation(name, POST_HOOK):
                assert f"up-node-upgrade-post-drain-{name}" in self.succeeded
                assert name in self.booted

    @invariant()
    def nothing_runs_again_after_it_succeeded(self) -> None:
        assert getattr(self, "twice", []) == []

    @invariant()
    def what_was_borrowed_is_back_at_the_end(self) -> None:
        if hasattr(self, "found") and (not self.there() or self.found.phase == SUCCEEDED):
            cluster = self.found.get("provisioning.cattle.io/v1", "Cluster", "local", "fleet-local")
            assert cluster["spec"]["rkeConfig"]["upgradeStrategy"] == STRATEGY
            name = "replica-replenishment-wait-interval"
            assert self.found.get("longhorn.io/v1beta2", "Setting", name, "longhorn-system")["value"] == "600"

    # --------------------------------------------------------------------------------------------------------- support

    def nodes(self) -> list[str]:
        return sorted(body["metadata"]["name"] for body in self.found.all("Node"))

    def there(self) -> bool:
        return bool([body for body in self.found.all("UpgradePlan") if body["metadata"]["name"] == "up"])

    def _ask(self, key: str) -> None:
        self.values += 1
        self.found.ask(str(self.turn), key, f"attempt {self.values}")

    def _answered(self, key: str, hook: str) -> bool:
        value = self.found.annotation(str(self.turn), key)
        return value is not None and value == self.found.annotation(str(self.turn), hook)

    def _look(self) -> None:
        """Notes every Job that is there; one with another uid after the first had succeeded ran twice."""
        for body in self.found.all("Job"):
            name, uid = body["metadata"]["name"], body["metadata"]["uid"]
            if name in self.succeeded and self.made.get(name, uid) != uid:
                self.twice.append(name)
            self.made[name] = uid


Upgrade.TestCase.settings = settings(
    max_examples=8,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],  # a failure is told at once; shrinking one takes minutes
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestUpgrade = Upgrade.TestCase
