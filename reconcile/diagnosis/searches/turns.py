"""Finds whose turn it is: nodes that are held, machines that Rancher has not started to upgrade and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconcile.diagnosis.searches.machines import POST_DRAIN, PRE_DRAIN, is_asked, machine_plans
from reconcile.diagnosis.situation import (
    MACHINES,
    RANCHER,
    Cause,
    Situation,
    is_for_rancher,
)
from renderer.context.facts import node_of_machine
from renderer.model.ref import Body, ref_of

_TURN = "wait for its turn"


def held(situation: Situation) -> Iterator[Cause]:
    """Nodes that the operator holds, and whom they hold up."""
    for node in situation.paused:
        others = [name for name in _unpicked(situation) if name != node]
        also = f", and holds up {', '.join(others)}: one machine is upgraded at a time" if others else ""
        yield Cause(
            object=f"Node {node}",
            what=f"is paused by spec.nodeUpgradeOption.pauseNodes{also}",
            node=node,
            since=situation.since(node),
            remedy=f"upgradeplan resume {node} --plan {situation.plan}",
        )


def asked_together(situation: Situation) -> Iterator[Cause]:
    """Several nodes that Rancher asks to drain at the same time, whatever its concurrency is."""
    asked = _asked(situation, PRE_DRAIN, POST_DRAIN)
    waiting = [node for node in _asked(situation, PRE_DRAIN) if node not in situation.out_of_service]
    if len(asked) > 1 and waiting:
        yield Cause(
            object="Rancher",
            what=f"has asked to drain {' and '.join(asked)}, expected one at a time; "
            f"{' and '.join(waiting)} {'waits' if len(waiting) == 1 else 'wait'}",
            node=waiting[0],
            since=situation.since(waiting[0]),
            remedy=_TURN,
            patient=True,
        )


def unpicked(situation: Situation) -> Iterator[Cause]:
    """Machines that wait for Rancher, while it is busy with another one."""
    asked = {*_asked(situation, PRE_DRAIN, POST_DRAIN), *_untaken(situation)}
    busy = sorted({*situation.busy, *asked, *situation.paused})
    for node, machine in _unpicked(situation).items():
        others = ", ".join(name for name in busy if name != node)
        yield Cause(
            object=f"Machine fleet-local/{machine}",
            what=f"Rancher is busy with {others}" if others else "Rancher has not started to upgrade it",
            node=node,
            since=situation.since(node),
            remedy=_TURN if others else RANCHER,
            patient=bool(others),
        )


def unanswered(situation: Situation) -> Iterator[Cause]:
    """Machines that Rancher has begun with, and does not go on with."""
    begun = situation.out_of_service | situation.upgraded
    for wait in situation.waits:
        if wait.slow and wait.node in begun and is_for_rancher(wait):
            yield Cause(
                object=f"Machine fleet-local/{situation.machine(wait.node)}",
                what="Rancher has not continued with it",
                node=wait.node,
                since=situation.since(wait.node),
                remedy=RANCHER,
            )


def untaken(situation: Situation) -> Iterator[Cause]:
    """Machines that are upgraded, and that Rancher still asks for while something waits for them."""
    slow = {ref for wait in situation.waits if wait.slow for ref in wait.refs}
    for node, (machine, secret) in _untaken(situation).items():
        yield Cause(
            object=f"Machine fleet-local/{machine}",
            what="is upgraded, and Rancher has not taken its node back",
            node=node,
            remedy=RANCHER,
            patient=ref_of(secret) not in slow,
        )


def _untaken(situation: Situation) -> Mapping[str, tuple[str, Body]]:
    """Node to Machine and machine-plan Secret, of those that are upgraded and that Rancher still asks for."""
    waited, plans = {wait.node for wait in situation.waits}, machine_plans(situation)
    pairs = ((node_of_machine(machine), ref_of(machine).name) for machine in situation.all(MACHINES))
    return {
        node: (machine, plans[machine])
        for node, machine in pairs
        if node in situation.upgraded and node not in waited and is_asked(plans.get(machine, {}), POST_DRAIN)
    }


def _unpicked(situation: Situation) -> Mapping[str, str]:
    """Node to Machine, of those that are waited for, have not started, and have no drain request."""
    begun = {
        *situation.busy,
        *_asked(situation, PRE_DRAIN),
        *situation.upgraded,
    }
    return {node: machine for node, machine in _waited(situation).items() if node not in begun}


def _asked(situation: Situation, *annotations: str) -> list[str]:
    """Nodes that are waited for, and for which Rancher asks by one of these."""
    plans = machine_plans(situation)
    return [node for node, machine in _waited(situation).items() if is_asked(plans[machine], *annotations)]


def _waited(situation: Situation) -> Mapping[str, str]:
    """Node to Machine, of those that are waited for and have a machine-plan Secret, by name."""
    waited, plans = {wait.node for wait in situation.waits if wait.node}, machine_plans(situation)
    pairs = {node_of_machine(machine): ref_of(machine).name for machine in situation.all(MACHINES)}
    return {node: machine for node, machine in sorted(pairs.items()) if node in waited and machine in plans}
