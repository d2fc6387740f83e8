"""Rancher's planner on the local cluster: one node at a time, with the drain hooks that the Cluster asks for.

It reads the hooks again before every step. Where they are gone it goes on without asking, so a cleanup that removes
them too early shows as a node that is upgraded without having been drained. Compared with github.com/rancher/rancher,
pkg/capr/planner (planner.go, drain.go, planentry.go) and pkg/controllers/capr/machinedrain; not with a running Rancher.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from reconcile.simulator.actors.actor_client import (
    CAPI_CLUSTER,
    DISRUPTION_BUDGET,
    MACHINE,
    NODE,
    POD,
    PROVISIONING_CLUSTER,
    SECRET,
    VMI,
)
from reconcile.simulator.actors.actor_context import (
    ActorContext,
    Timers,
    annotations_of,
    conditions,
    has_condition,
    is_deleted,
    status_of,
)
from reconcile.simulator.actors.placement import CORDON_TAINT, with_taint, without_taint
from reconcile.simulator.actors.simulation_log import SimulationEventType
from reconcile.simulator.actors.turns import (
    At,
    Turn,
    asking_value,
    drain_options,
    hooks_of,
    is_evicted,
    is_plan_of,
    is_protected,
    rank_of,
    target_of,
    tier_of,
    told_of,
)
from renderer.context.facts import node_of_machine
from renderer.model.ref import Body

NAMESPACE, CLUSTER = "fleet-local", "local"
ACT, ORDER = "rancher", "one-at-a-time"
ASKS_BEFORE, ASKS_AFTER = "pre-drain-request", "post-drain-request"
PRE_DRAIN, POST_DRAIN = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"


class Rancher:
    """Starts when the Cluster's version or generation changes from what they were when the simulation began."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client.as_manager(ACT)
        self._timers = Timers()
        self._applied: tuple[Any, Any] | None = None
        self._expected: tuple[Any, Any] | None = None
        self._done: set[str] = set()
        self._turns: dict[str, Turn] = {}
        self._found: Sequence[Body] = ()
        self._in_order: list[Body] = []

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        cluster = self._client.find(PROVISIONING_CLUSTER, CLUSTER, NAMESPACE)
        before = self._where()
        if cluster is not None:
            self._plan(cluster, now)
        return self._client.take_changed() or self._where() != before

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    # ------------------------------------------------------------------------------------------------------ planning

    def _plan(self, cluster: Body, now: datetime) -> None:
        expected = target_of(cluster)
        self._applied = self._applied or expected
        if expected != self._expected:
            self._expected = expected
            self._done.clear()
        if expected != self._applied:
            self._roll_out(cluster, now)
        self._report(cluster, now)

    def _roll_out(self, cluster: Body, now: datetime) -> None:
        for turn in tuple(self._turns.values()):
            self._go_on(turn, cluster, now)
        if len(self._turns) >= self._at_once():
            return
        left = self._left()
        if not left:
            self._applied = self._expected
        elif not self._is_paused():
            self._pick(left, now)

    def _left(self) -> list[Body]:
        return [machine for machine in self._machines() if machine["metadata"]["name"] not in self._done]

    def _is_paused(self) -> bool:
        """Nobody reconciles the machines of a paused Cluster, however healthy it looks."""
        cluster = self._client.find(CAPI_CLUSTER, CLUSTER, NAMESPACE) or {}
        return bool((cluster.get("spec") or {}).get("paused"))

    def _where(self) -> object:
        """The objects that must be looked at again at once when they have changed."""
        return (
            self._applied,
            self._expected,
            tuple((turn.machine, turn.at, turn.value) for turn in self._turns.values()),
        )

    def _pick(self, left: Sequence[Body], now: datetime) -> None:
        """The next machine."""
        for machine in left:
            name, node = str(machine["metadata"]["name"]), node_of_machine(machine)
            if len(self._turns) >= self._at_once():
                return
            if name in self._turns or not node:
                continue
            lasts = self._context.faults.lasts(ACT, self._context.settings.pick, node)
            if not self._timers.passed((name, self._expected, "pick"), lasts):
                return
            self._turns[name] = Turn(machine=name, node=node, tier=tier_of(machine))

    def _at_once(self) -> int:
        """Two where Rancher does not keep its own order."""
        return 2 if self._context.faults.fails(ORDER) else 1

    def _machines(self) -> list[Body]:
        """The first server first, then servers, then workers, by name."""
        found = self._client.all(MACHINE, NAMESPACE)
        if found is not self._found:
            machines = [each for each in found if not is_deleted(each)]
            self._in_order = sorted(machines, key=lambda each: (rank_of(each), each["metadata"]["name"]))
            self._found = found
        return self._in_order

    def _report(self, cluster: Body, now: datetime) -> None:
        busy = self._applied != self._expected
        reported: dict[str, Any] = {"observedGeneration": cluster["metadata"]["generation"]}
        if busy or not has_condition(cluster, "Updated"):
            reported["conditions"] = conditions(cluster, now, self._updated(busy), time="lastUpdateTime")
        self._client.patch_status(cluster, reported)

    def _updated(self, busy: bool) -> dict[str, str]:
        if not busy:
            return {"type": "Updated", "status": "True", "reason": "", "message": ""}
        message = _PAUSED if self._is_paused() else told_of(tuple(self._turns.values()), self._left())
        return {"type": "Updated", "status": "Unknown", "reason": "Waiting", "message": message}

    # ------------------------------------------------------------------------------------------------------ one turn

    def _go_on(self, turn: Turn, cluster: Body, now: datetime) -> None:
        machine = self._client.find(MACHINE, turn.machine, NAMESPACE)
        secret, node = self._secret(turn.machine), self._client.find(NODE, turn.node)
        if machine is None or node is None:
            del self._turns[turn.machine]
            return
        if secret is None:
            return
        options = drain_options(cluster, machine)
        if turn.at in (At.PICKED, At.UPGRADED) and self._is_paused():
            return
        match turn.at:
            case At.PICKED:
                self._begin(turn, options, secret, node, now)
            case At.ASKED_BEFORE:
                if not options.get("enabled"):
                    turn.at = At.UPGRADING
                elif self._is_answered(turn, options, secret, now):
                    turn.at = At.DRAINING
            case At.DRAINING:
                self._drain(turn, now)
            case At.UPGRADING:
                self._upgrade(turn, node, now)
            case At.UPGRADED:
                self._conclude(turn, options, secret, node, now)
            case At.ASKED_AFTER:
                if not options.get("enabled") or self._is_answered(turn, options, secret, now):
                    self._finish(turn, secret, node, now)

    def _begin(self, turn: Turn, options: Mapping[str, Any], secret: Body, node: Body, now: datetime) -> None:
        if not options.get("enabled") and self._has_version(node):
            self._finish(turn, secret, node, now)
        elif not options.get("enabled"):
            turn.at = At.UPGRADING
        elif not options.get("preDrainHooks"):
            self._cordon(turn, node, now)
            turn.at = At.DRAINING
        elif self._may_ask(turn, ASKS_BEFORE):
            self._cordon(turn, node, now)
            self._ask(turn, At.ASKED_BEFORE, options, secret, now)

    def _may_ask(self, turn: Turn, operation: str) -> bool:
        lasts = self._context.faults.lasts(operation, self._context.settings.pick * 0, turn.node)
        return self._timers.passed((turn.machine, self._expected, operation), lasts)

    def _ask(self, turn: Turn, at: At, options: Mapping[str, Any], secret: Body, now: datetime) -> None:
        if turn.at is not at:
            turn.answered = 0
        turn.at, turn.value = at, asking_value(options, turn.answered)
        turn.hooks = hooks_of(options, "preDrainHooks", "postDrainHooks")
        key, what = _ASKING[at]
        self._client.patch(secret, {"metadata": {"annotations": {key: turn.value}}})
        self._context.log.add(now, what, turn.node, turn.node, turn.value)

    def _is_answered(self, turn: Turn, options: Mapping[str, Any], secret: Body, now: datetime) -> bool:
        """Every hook has the value, byte for byte. Where it is to repeat itself, Rancher then asks with another."""
        before = turn.at is At.ASKED_BEFORE
        answers = annotations_of(secret)
        hooks = hooks_of(options, "preDrainHooks" if before else "postDrainHooks")
        if any(answers.get(hook) != turn.value for hook in hooks):
            return False
        what = SimulationEventType.PRE_DRAIN_ANSWERED if before else SimulationEventType.POST_DRAIN_ANSWERED
        self._context.log.add(now, what, turn.node, turn.node, turn.value)
        turn.answered += 1
        if turn.answered > self._context.faults.repeats(ASKS_BEFORE if before else ASKS_AFTER, turn.node):
            return True
        self._ask(turn, turn.at, options, secret, now)
        return False

    def _cordon(self, turn: Turn, node: Body, now: datetime) -> None:
        """Comes before the request, so that a node that waits for its answer is cordoned already."""
        if (node.get("spec") or {}).get("unschedulable"):
            return
        self._client.patch(node, {"spec": {"unschedulable": True, "taints": with_taint(node, CORDON_TAINT)}})
        self._context.log.add(now, SimulationEventType.CORDONED, turn.node, turn.node)

    def _drain(self, turn: Turn, now: datetime) -> None:
        there = {str(pod["metadata"]["uid"]): pod for pod in self._client.all(POD) if is_evicted(pod, turn.node)}
        turn.leaving = frozenset(there) if turn.leaving is None else turn.leaving
        pods = [pod for uid, pod in there.items() if uid in turn.leaving]
        budgets = self._client.all(DISRUPTION_BUDGET)
        held = [pod for pod in pods if is_protected(pod, budgets)]
        for pod in pods:
            if pod not in held:
                self._client.delete(pod)
        lasts = self._context.faults.lasts("drain", self._context.settings.drain, turn.node)
        passed = self._timers.passed((turn.machine, self._expected, "drain"), lasts)
        if passed and not held and not self._evacuates(turn.node) and not self._is_paused():
            turn.drained = True
            turn.at = At.UPGRADING
            self._context.log.add(now, SimulationEventType.DRAINED, turn.node, turn.node)

    def _upgrade(self, turn: Turn, node: Body, now: datetime) -> None:
        lasts = self._context.faults.lasts("kubernetes", self._context.settings.kubernetes, turn.node)
        if not self._timers.passed((turn.machine, self._expected, "kubernetes"), lasts):
            return
        version = self._version()
        self._client.patch_status(node, {"nodeInfo": {"kubeletVersion": version}})
        how = "drained" if turn.drained else "not drained"
        self._context.log.add(now, SimulationEventType.KUBERNETES_UPGRADED, turn.node, turn.node, f"{version}, {how}")
        turn.at = At.UPGRADED

    def _conclude(self, turn: Turn, options: Mapping[str, Any], secret: Body, node: Body, now: datetime) -> None:
        if not options.get("enabled") or not options.get("postDrainHooks"):
            self._finish(turn, secret, node, now)
        elif self._may_ask(turn, ASKS_AFTER):
            self._ask(turn, At.ASKED_AFTER, options, secret, now)

    def _finish(self, turn: Turn, secret: Body, node: Body, now: datetime) -> None:
        if (node.get("spec") or {}).get("unschedulable"):
            taints = without_taint(node, CORDON_TAINT)
            self._client.patch(node, {"spec": {"unschedulable": None, "taints": taints or None}})
            self._context.log.add(now, SimulationEventType.UNCORDONED, turn.node, turn.node)
        over = dict.fromkeys((PRE_DRAIN, POST_DRAIN, *turn.hooks))
        self._client.patch(secret, {"metadata": {"annotations": over}})
        self._done.add(turn.machine)
        del self._turns[turn.machine]

    # ------------------------------------------------------------------------------------------------------- looking

    def _secret(self, machine: str) -> Body | None:
        return next((each for each in self._client.all(SECRET, NAMESPACE) if is_plan_of(each, machine)), None)

    def _version(self) -> str:
        return str((self._expected or ("", ""))[0])

    def _has_version(self, node: Body) -> bool:
        return (status_of(node).get("nodeInfo") or {}).get("kubeletVersion") == self._version()

    def _evacuates(self, node: str) -> bool:
        """True while virtual machines run there: the eviction of a pod marks its machine, for KubeVirt to move it."""
        there = {"nodeName": node, "phase": "Running"}.items()
        found = [each for each in self._client.all(VMI) if there <= status_of(each).items()]
        for each in found:
            self._client.patch_status(each, {"evacuationNodeName": node})
        return bool(found)


_PAUSED = "CAPI cluster or RKEControlPlane is paused"
_ASKING = {
    At.ASKED_BEFORE: (PRE_DRAIN, SimulationEventType.PRE_DRAIN_ASKED),
    At.ASKED_AFTER: (POST_DRAIN, SimulationEventType.POST_DRAIN_ASKED),
}
