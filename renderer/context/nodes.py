"""The nodes of the upgrade, joined once: Node to Machine to machine-plan Secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from renderer.context.facts import Facts, every, label, meta, node_of_machine, status, text_at
from renderer.context.scope import run_time_mark
from renderer.model.ref import Body

_MANAGED = "harvesterhci.io/managed"
_WITNESS = "node-role.harvesterhci.io/witness"


def nodes_of(facts: Facts, plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Managed nodes, and those that the run has recorded and that are still there; by name."""
    live = {meta(item, "name"): item for item in every(facts, "v1", "Node")}
    managed = {name for name, node in live.items() if label(node, _MANAGED) == "true"}
    recorded = set(status(facts, "nodeUpgradeStatuses") or {})
    if live:
        recorded &= set(live)  # a node that has left the cluster is not waited for
    paused = set(plan["spec"]["nodeUpgradeOption"]["pauseNodes"] or ())
    machines = _machines(facts)
    plans = _machine_plans(facts)
    return [
        _node(name, live.get(name, {}), name in paused, machines.get(name), plans)
        for name in sorted(managed | recorded)
    ]


def _node(name: str, node: Body, paused: bool, machine: str | None, plans: Mapping[str, str]) -> dict[str, Any]:
    machine = machine or text_at(node, "metadata", "annotations", "cluster.x-k8s.io/machine")
    return {
        "name": name,
        "witness": label(node, _WITNESS) not in (None, "false"),
        "paused": paused,
        "machine": machine,
        "machinePlan": plans.get(machine or "") or unknown_plan(name),
    }


def unknown_plan(node: str) -> str:
    return run_time_mark(f"machine-plan Secret of {node}")


def _machines(facts: Facts) -> dict[str, str]:
    """Node name to Machine name."""
    found = (item for item in every(facts, "cluster.x-k8s.io/", "Machine") if meta(item, "namespace") == "fleet-local")
    pairs = ((node_of_machine(item), meta(item, "name")) for item in found)
    return {node: machine for node, machine in pairs if node}


def _machine_plans(facts: Facts) -> dict[str, str]:
    """Machine name to the name of its machine-plan Secret."""
    secrets = (item for item in every(facts, "v1", "Secret") if item.get("type") == "rke.cattle.io/machine-plan")
    pairs = ((label(item, "rke.cattle.io/machine-name"), meta(item, "name")) for item in secrets)
    return {machine: name for machine, name in pairs if machine}


def single_node_of(facts: Facts, nodes: Sequence[Mapping[str, Any]]) -> str | None:
    """As recorded once Initialize has looked; before that, the only managed node."""
    status = facts.plan.get("status") or {}
    if status.get("previousVersion"):
        return status.get("singleNode")
    return nodes[0]["name"] if len(nodes) == 1 else None
