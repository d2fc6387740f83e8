"""Rancher's planner on the local cluster: one node at a time, with the drain hooks that the Cluster asks for.

It reads the hooks again before every step. Where they are gone it goes on without asking, so a cleanup that removes
them too early shows as a node that is upgraded without having been drained. Modelled on the annotations and
conditions of github.com/rancher/rancher, package capr/planner; not compared with a running Rancher.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from reconcile.objects import selects
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
    labels_of,
    status_of,
)
from reconcile.simulator.actors.placement import CORDON_TAINT, with_taint, without_taint
from reconcile.simulator.actors.simulation_log import SimulationEventType
from reconcile.simulator.actors.turns import At, Turn, drain_options, is_evicted, rank_of, target_of
from renderer.context.facts import node_of_machine
from renderer.model.ref import Body

NAMESPACE, CLUSTER = "fleet-local", "local"
ACT, ORDER = "rancher", "one-at-a-time"
ASKS_BEFORE, ASKS_AFTER = "pre-drain-request", "post-drain-request"
PRE_DRAIN, POST_DRAIN = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"
_MACHINE_PLAN = "rke.cattle.io/machine-plan"
_MACHINE_NAME = "rke.cattle.io/machine-name"


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
        left = [machine for machine in self._machines() if machine["metadata"]["name"] not in self._done]
        if not left:
            self._applied = self._expected
        elif not self._is_paused():
            self._pick(left, now)

    def _is_paused(self) -> bool:
        """Nobody reconciles the machines of a paused Cluster, however healthy it looks."""
        cluster = self._client.find(CAPI_CLUSTER, CLUSTER, NAMESPACE) or {}
        return bool((cluster.get("spec") or {}).get("paused"))

    def _where(self) -> object:
        """The objects that must be looked at again at once when they have changed."""
        return (
            self._applied,
            self._expected,
            tuple((turn.machine, turn.at, turn.asked) for turn in self._turns.values()),
        )

    def _pick(self, left: Sequence[Body], now: datetime) -> None:
        """The next machine; two at once where Rancher does not keep its own order."""
        at_once = 2 if self._context.faults.fails(ORDER) else 1
        for machine in left:
            name, node = str(machine["metadata"]["name"]), node_of_machine(machine)
            if len(self._turns) >= at_once:
                return
            if name in self._turns or not node:
                continue
            lasts = self._context.faults.lasts(ACT, self._context.settings.pick, node)
            if not self._timers.passed((name, self._expected, "pick"), lasts):
                return
            self._turns[name] = Turn(machine=name, node=node)

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
        turns = ", ".join(f"{turn.machine} {turn.at.value}" for turn in self._turns.values())
        message = f"configuring node(s): {turns or 'none yet'}"
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
        """The value is nobody's business but Rancher's; it is another one each time."""
        attempt = {**options, "attempt": f"{turn.machine} & <{turn.asked + 1}>"}
        value = json.dumps(attempt, separators=(",", ":"))
        key, what = _ASKING[at]
        self._client.patch(secret, {"metadata": {"annotations": {key: value}}})
        if turn.at is not at:
            turn.answered = 0
        turn.at, turn.value, turn.asked = at, value, turn.asked + 1
        self._context.log.add(now, what, turn.node, turn.node, turn.value)

    def _is_answered(self, turn: Turn, options: Mapping[str, Any], secret: Body, now: datetime) -> bool:
        """Every hook has the value, byte for byte. Where it is to repeat itself, Rancher then asks with another."""
        before = turn.at is At.ASKED_BEFORE
        hooks = options.get("preDrainHooks" if before else "postDrainHooks") or ()
        answers = annotations_of(secret)
        if any(answers.get(hook["annotation"]) != turn.value for hook in hooks):
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
        held = [pod for pod in pods if self._is_protected(pod)]
        for pod in pods:
            if pod not in held:
                self._client.delete(pod)
        lasts = self._context.faults.lasts("drain", self._context.settings.drain, turn.node)
        passed = self._timers.passed((turn.machine, self._expected, "drain"), lasts)
        if passed and not held and not self._hosts_machines(turn.node):
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
        self._client.patch(secret, {"metadata": {"annotations": {PRE_DRAIN: None, POST_DRAIN: None}}})
        self._done.add(turn.machine)
        del self._turns[turn.machine]

    # ------------------------------------------------------------------------------------------------------- looking

    def _secret(self, machine: str) -> Body | None:
        found = (
            secret
            for secret in self._client.all(SECRET, NAMESPACE)
            if secret.get("type") == _MACHINE_PLAN and labels_of(secret).get(_MACHINE_NAME) == machine
        )
        return next(found, None)

    def _version(self) -> str:
        return str((self._expected or ("", ""))[0])

    def _has_version(self, node: Body) -> bool:
        return (status_of(node).get("nodeInfo") or {}).get("kubeletVersion") == self._version()

    def _is_protected(self, pod: Body) -> bool:
        budgets = self._client.all(DISRUPTION_BUDGET, pod["metadata"]["namespace"])
        return any(
            selects(budget["spec"].get("selector"), labels_of(pod))
            and status_of(budget).get("disruptionsAllowed", 1) < 1
            for budget in budgets
        )

    def _hosts_machines(self, node: str) -> bool:
        """A virtual machine's pod cannot be evicted while it runs there."""
        return any(
            status_of(each).get("nodeName") == node and status_of(each).get("phase") == "Running"
            for each in self._client.all(VMI)
        )


_ASKING = {
    At.ASKED_BEFORE: (PRE_DRAIN, SimulationEventType.PRE_DRAIN_ASKED),
    At.ASKED_AFTER: (POST_DRAIN, SimulationEventType.POST_DRAIN_ASKED),
}
