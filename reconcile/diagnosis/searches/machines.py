"""Nodes, Machines and machine-plan Secrets that do not belong together. Rancher asks in the Secret of a Machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconcile.decide.probing import NO_MACHINE
from reconcile.diagnosis.situation import MACHINE_PLANS, MACHINES, NODES, RANCHER, Cause, Situation, mapping, text
from reconcile.objects import label
from renderer.context.facts import node_of_machine
from renderer.model.ref import Body, ref_of

MACHINE_NAME = "rke.cattle.io/machine-name"
PRE_DRAIN, POST_DRAIN = "rke.cattle.io/pre-drain", "rke.cattle.io/post-drain"


def machine_plans(situation: Situation) -> Mapping[str, Body]:
    """Machine name to its machine-plan Secret."""
    secrets = (s for s in situation.all(MACHINE_PLANS) if text(s, "type") == "rke.cattle.io/machine-plan")
    return {label(secret, MACHINE_NAME): secret for secret in secrets}


def is_asked(secret: Body, *annotations: str) -> bool:
    """True if Rancher asks by one of these."""
    return any(name in mapping(secret, "metadata", "annotations") for name in annotations)


def nobodys_nodes(situation: Situation) -> Iterator[Cause]:
    """Nodes for which Rancher cannot ask."""
    for node in (wait.node for wait in situation.waits if wait.node and wait.text.startswith(NO_MACHINE)):
        if machine := situation.machine(node):
            yield Cause(
                object=f"Machine fleet-local/{machine}",
                what=f"has no machine-plan Secret, by which Rancher asks to drain node {node}",
                node=node,
                since=situation.since(node),
                remedy=RANCHER,
            )
        else:
            yield Cause(
                object=f"Node {node}",
                what="has no Machine of fleet-local that refers to it, so Rancher does not know it",
                node=node,
                since=situation.since(node),
                remedy="join it to the cluster again, or delete it and the upgrade continues without it: "
                f"kubectl delete node {node}",
            )


def nodeless(situation: Situation) -> Iterator[Cause]:
    """machine-plan Secrets that are waited for, and belong to no node."""
    waited = {ref.name for ref in situation.named("Secret")}
    nodes = {ref_of(node).name for node in situation.all(NODES)}
    machines = {ref_of(machine).name: node_of_machine(machine) for machine in situation.all(MACHINES)}
    for machine, secret in machine_plans(situation).items():
        name = ref_of(secret).name
        if name not in waited or machines.get(machine) in nodes or not is_asked(secret, POST_DRAIN):
            continue
        why, remedy = "which does not exist", f"delete it: kubectl delete secret -n fleet-local {name}"
        if machine in machines:
            why = "whose node does not exist"
            remedy = f"delete the Machine: kubectl delete machines.cluster.x-k8s.io -n fleet-local {machine}"
        yield Cause(
            object=f"Secret fleet-local/{name}",
            what=f"still asks to post-drain, and belongs to Machine {machine}, {why}",
            remedy=remedy,
        )
