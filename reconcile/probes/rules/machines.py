"""Nodes and Cluster API's Machines, one to one: Rancher upgrades Machines, and waits for each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reconcile.probes.look import NODES, Group
from reconcile.probes.rules.call import RuleCall, listed
from reconcile.probes.verdict import Verdict, passed, waiting
from renderer.context.facts import node_of_machine
from renderer.model.path import look_up
from renderer.model.ref import Body, ref_of

_MACHINES = Group(api_version="cluster.x-k8s.io/v1beta1", kind="Machine", namespace="fleet-local")
_MACHINE = ("metadata", "annotations", "cluster.x-k8s.io/machine")


def of_node(call: RuleCall) -> Verdict:
    """The Machine that the Node names exists and names the Node."""
    name = look_up(call.body, _MACHINE)
    if not isinstance(name, str) or not name:
        return waiting("has no annotation cluster.x-k8s.io/machine, so it belongs to no Machine")
    found = listed(call, _MACHINES)
    if isinstance(found, Verdict):
        return found
    (machines,) = found
    by_name = call.scope.worked_out.once("machineOfNode", (machines,), lambda: _by_name(machines))
    machine = by_name.get(name)
    if machine is None:
        return waiting(f"its Machine fleet-local/{name} does not exist")
    node = node_of_machine(machine)
    if node and node != call.object.name:
        return waiting(f"its Machine fleet-local/{name} belongs to Node {node}")
    return passed(f"Machine fleet-local/{name} is its own")


def _by_name(machines: Sequence[Body]) -> Mapping[str, Body]:
    return {ref_of(body).name: body for body in machines}


def as_many_as_nodes(call: RuleCall) -> Verdict:
    """Says which have no counterpart."""
    found = listed(call, NODES, _MACHINES)
    if isinstance(found, Verdict):
        return found
    nodes, machines = found
    if not nodes:
        return waiting("no Node was found, expected at least 1")
    says = f"{_counted(len(nodes), 'Node')} and {_counted(len(machines), 'Machine')} in fleet-local"
    if len(nodes) == len(machines):
        return passed(says)
    return waiting(": ".join((says, *_alone(nodes, machines))))


def _alone(nodes: Sequence[Body], machines: Sequence[Body]) -> tuple[str, ...]:
    """The Nodes and Machines without a counterpart, in words; nothing where there is none."""
    of_machines = {ref_of(body).name: node_of_machine(body) for body in machines}
    names = {ref_of(body).name: look_up(body, _MACHINE) for body in nodes}
    single = [
        *(f"Node {name} has no Machine" for name, machine in names.items() if not _paired(name, machine, of_machines)),
        *(f"Machine {name} has no Node" for name, node in of_machines.items() if node not in names),
    ]
    return (", ".join(single),) if single else ()


def _paired(node: str, machine: object, of_machines: Mapping[str, str]) -> bool:
    return node in of_machines.values() or machine in of_machines


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
