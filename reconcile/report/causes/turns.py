"""Finds whose turn it is: nodes that are held, machines that Rancher has not started to upgrade and why, a paused
cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconcile.report.causes.cause import (
    CLUSTERS,
    MACHINES,
    RANCHER,
    Cause,
    DiagnosisInput,
    is_for_rancher,
)
from reconcile.report.causes.machines import POST_DRAIN, PRE_DRAIN, is_asked, machine_plans
from renderer.context.facts import node_of_machine
from renderer.model.path import look_up
from renderer.model.ref import Body, ref_of

_TURN = "wait for its turn"


def held(diagnosis: DiagnosisInput) -> Iterator[Cause]:
    """Nodes that the operator holds, and whom they hold up."""
    for node in diagnosis.paused:
        others = [name for name in _unpicked(diagnosis) if name != node]
        also = f", and holds up {', '.join(others)}: one machine is upgraded at a time" if others else ""
        yield Cause(
            object=f"Node {node}",
            what=f"is paused by spec.nodeUpgradeOption.pauseNodes{also}",
            node=node,
            since=diagnosis.since(node),
            remedy=f"upgradeplan resume {node} --plan {diagnosis.plan}",
        )


def paused_cluster(diagnosis: DiagnosisInput) -> Iterator[Cause]:
    """Cluster API does nothing on a cluster that is paused, and says so nowhere."""
    for cluster in diagnosis.all(CLUSTERS):
        ref = ref_of(cluster)
        if look_up(cluster, ("spec", "paused")) is True:
            yield Cause(
                object=f"Cluster {ref.namespace}/{ref.name} (cluster.x-k8s.io)",
                what="is paused, so no machine is upgraded",
                remedy=f"kubectl patch clusters.cluster.x-k8s.io -n {ref.namespace} {ref.name} --type merge "
                """-p '{"spec":{"paused":false}}'""",
            )


def asked_together(diagnosis: DiagnosisInput) -> Iterator[Cause]:
    """Several nodes that Rancher asks for at the same time, whatever its concurrency is."""
    asked = _asked(diagnosis, PRE_DRAIN, POST_DRAIN)
    waiting = [node for node in _asked(diagnosis, PRE_DRAIN) if node not in diagnosis.out_of_service]
    if len(asked) > 1 and waiting:
        yield Cause(
            object="Rancher",
            what=f"has asked to drain {' and '.join(asked)}, expected one at a time; "
            f"{' and '.join(waiting)} {'waits' if len(waiting) == 1 else 'wait'}",
            node=waiting[0],
            since=diagnosis.since(waiting[0]),
            remedy=_TURN,
            patient=True,
        )


def unpicked(diagnosis: DiagnosisInput) -> Iterator[Cause]:
    """Machines that wait for Rancher, while it is busy with another one."""
    asked = {*_asked(diagnosis, PRE_DRAIN, POST_DRAIN), *_untaken(diagnosis)}
    busy = sorted({*diagnosis.busy, *asked, *diagnosis.paused})
    for node, machine in _unpicked(diagnosis).items():
        others = ", ".join(name for name in busy if name != node)
        yield Cause(
            object=f"Machine fleet-local/{machine}",
            what=f"Rancher is busy with {others}" if others else "Rancher has not started to upgrade it",
            node=node,
            since=diagnosis.since(node),
            remedy=_TURN if others else RANCHER,
            patient=bool(others),
        )


def unanswered(diagnosis: DiagnosisInput) -> Iterator[Cause]:
    """Machines that Rancher has begun with, and does not go on with."""
    begun = diagnosis.out_of_service | diagnosis.upgraded
    for wait in diagnosis.waits:
        if wait.slow and wait.node in begun and is_for_rancher(wait):
            yield Cause(
                object=f"Machine fleet-local/{diagnosis.machine(wait.node)}",
                what="Rancher has not continued with it",
                node=wait.node,
                since=diagnosis.since(wait.node),
                remedy=RANCHER,
            )


def untaken(diagnosis: DiagnosisInput) -> Iterator[Cause]:
    """Machines that are upgraded, and that Rancher still asks for while something waits for them."""
    slow = {ref for wait in diagnosis.waits if wait.slow for ref in wait.refs}
    for node, (machine, secret) in _untaken(diagnosis).items():
        yield Cause(
            object=f"Machine fleet-local/{machine}",
            what="is upgraded, and Rancher has not taken its node back",
            node=node,
            remedy=RANCHER,
            patient=ref_of(secret) not in slow,
        )


def _untaken(diagnosis: DiagnosisInput) -> Mapping[str, tuple[str, Body]]:
    """Node to Machine and machine-plan Secret, of those that are upgraded and that Rancher still asks for."""
    waited, plans = {wait.node for wait in diagnosis.waits}, machine_plans(diagnosis)
    pairs = ((node_of_machine(machine), ref_of(machine).name) for machine in diagnosis.all(MACHINES))
    return {
        node: (machine, plans[machine])
        for node, machine in pairs
        if node in diagnosis.upgraded and node not in waited and is_asked(plans.get(machine, {}), POST_DRAIN)
    }


def _unpicked(diagnosis: DiagnosisInput) -> Mapping[str, str]:
    """Node to Machine, of those that are waited for, have not begun, and that nobody has asked to drain."""
    begun = {
        *diagnosis.busy,
        *_asked(diagnosis, PRE_DRAIN),
        *diagnosis.upgraded,
    }
    return {node: machine for node, machine in _waited(diagnosis).items() if node not in begun}


def _asked(diagnosis: DiagnosisInput, *annotations: str) -> list[str]:
    """Nodes that are waited for, and for which Rancher asks by one of these."""
    plans = machine_plans(diagnosis)
    return [node for node, machine in _waited(diagnosis).items() if is_asked(plans[machine], *annotations)]


def _waited(diagnosis: DiagnosisInput) -> Mapping[str, str]:
    """Node to Machine, of those that are waited for and have a machine-plan Secret, by name."""
    waited, plans = {wait.node for wait in diagnosis.waits if wait.node}, machine_plans(diagnosis)
    pairs = {node_of_machine(machine): ref_of(machine).name for machine in diagnosis.all(MACHINES)}
    return {node: machine for node, machine in sorted(pairs.items()) if node in waited and machine in plans}
