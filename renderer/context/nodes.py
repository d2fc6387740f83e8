"""The nodes of the upgrade, joined once: Node to Machine to machine-plan Secret."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import compress
from operator import is_not
from typing import Any

from renderer.context.facts import Facts, every, label, meta, node_of_machine, status, text_at
from renderer.context.scope import run_time_mark
from renderer.frozen import frozen
from renderer.model.node_labels import is_managed, is_witness
from renderer.model.ref import Body
from renderer.model.sharing import SameObject


def nodes_of(facts: Facts, plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Managed nodes, and those that the run has recorded and that are still there; by name."""
    live = {node.name: node for node in map(_node_of, map(SameObject, every(facts, "v1", "Node")))}
    managed = {name for name, node in live.items() if node.managed}
    recorded = set(status(facts, "nodeUpgradeStatuses") or {})
    if live:
        recorded &= set(live)  # a node that has left the cluster is not waited for
    paused = set(plan["spec"]["nodeUpgradeOption"]["pauseNodes"] or ())
    machines = _machines(facts)
    plans = _machine_plans(facts)
    return [
        _node(name, live.get(name, _NO_NODE), name in paused, machines.get(name), plans)
        for name in sorted(managed | recorded)
    ]


def _node(name: str, node: _NodeTraits, paused: bool, machine: str | None, plans: Mapping[str, str]) -> dict[str, Any]:
    machine = machine or node.machine
    return {
        "name": name,
        "witness": node.witness,
        "paused": paused,
        "machine": machine,
        "machinePlan": plans.get(machine or "") or unknown_plan(name),
    }


@frozen
class _NodeTraits:
    """All that is looked at of a Node; most changes of one are changes of something else."""

    name: str = ""
    managed: bool = False
    witness: bool = False
    machine: str | None = None


_NO_NODE = _NodeTraits()
_SEEN = 4096
"""Objects of which is remembered what was looked at, so that only those that have changed are looked at again."""


@lru_cache(_SEEN)
def _node_of(body: SameObject) -> _NodeTraits:
    node: Body = body.it
    return _NodeTraits(
        name=meta(node, "name"),
        managed=is_managed(node),
        witness=is_witness(node),
        machine=text_at(node, "metadata", "annotations", "cluster.x-k8s.io/machine"),
    )


def unknown_plan(node: str) -> str:
    return run_time_mark(f"machine-plan Secret of {node}")


def _machines(facts: Facts) -> dict[str, str]:
    """Node name to Machine name."""
    return dict(filter(None, map(_machine_of, map(SameObject, every(facts, "cluster.x-k8s.io/", "Machine")))))


@lru_cache(_SEEN)
def _machine_of(body: SameObject) -> tuple[str, str] | None:
    machine: Body = body.it
    node = node_of_machine(machine) if meta(machine, "namespace") == "fleet-local" else ""
    return (node, meta(machine, "name")) if node else None


def _machine_plans(facts: Facts) -> dict[str, str]:
    """Machine name to the name of its machine-plan Secret."""
    return dict(filter(None, map(_machine_plan_of, map(SameObject, every(facts, "v1", "Secret")))))


@lru_cache(_SEEN)
def _machine_plan_of(body: SameObject) -> tuple[str, str] | None:
    secret: Body = body.it
    machine = label(secret, "rke.cattle.io/machine-name")
    is_plan = secret.get("type") == "rke.cattle.io/machine-plan"
    return (machine, meta(secret, "name")) if is_plan and machine else None


def forget_objects() -> None:
    """Lets go of the objects that were looked at, where no more renderings of the same cluster follow."""
    for kept in (_node_of, _machine_of, _machine_plan_of):
        kept.cache_clear()


def seen_of(objects: Sequence[Body]) -> list[Any]:
    """All that a context is made from of these objects, to be compared: most changes of a Node or of a machine's Secret
    are changes of something else."""
    return [_TRAITS.get(item.get("kind"), _itself)(SameObject(item)) for item in objects]


def seen_again(objects: Sequence[Body], before: Sequence[Body], then: list[Any]) -> list[Any]:
    """The same, where `then` is what was seen of the objects `before`: most of them are the very same."""
    if len(objects) != len(before):
        return seen_of(objects)
    others = list(compress(range(len(objects)), map(is_not, objects, before)))
    found = list(then)
    for place, seen in zip(others, seen_of([objects[place] for place in others]), strict=True):
        found[place] = seen
    return found


def _itself(body: SameObject) -> Any:
    return body.it


_TRAITS: Mapping[Any, Callable[[SameObject], Any]] = {
    "Node": _node_of,
    "Machine": _machine_of,
    "Secret": _machine_plan_of,
}


def single_node_of(facts: Facts, nodes: Sequence[Mapping[str, Any]]) -> str | None:
    """As recorded once Initialize has looked; before that, the only managed node."""
    status = facts.plan.get("status") or {}
    if status.get("previousVersion"):
        return status.get("singleNode")
    return nodes[0]["name"] if len(nodes) == 1 else None
