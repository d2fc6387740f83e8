"""What became of virtual machines and nodes, read from the ledger: for the report of a rehearsal. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reconcile.simulator.actors.simulation_log import SimulationEvent, SimulationEventType


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFate:
    """`path` is the nodes that it was on, in order; a machine that was stopped may have been started again."""

    name: str
    path: tuple[str, ...]
    stopped: bool
    started: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFate:
    """When each thing happened to the node for the last time; None if it did not. `os` is what came up."""

    name: str
    asked: datetime | None
    drained: datetime | None
    kubernetes: datetime | None
    down: datetime | None
    back: datetime | None
    released: datetime | None
    os: str


def machine_fates(facts: Sequence[SimulationEvent]) -> tuple[MachineFate, ...]:
    """Those to which something happened, by name."""
    touched = [
        fact
        for fact in facts
        if fact.what in (SimulationEventType.VM_MOVED, SimulationEventType.VM_STOPPED, SimulationEventType.VM_STARTED)
    ]
    return tuple(
        _machine(name, [fact for fact in touched if fact.subject == name])
        for name in sorted({fact.subject for fact in touched})
    )


def node_fates(facts: Sequence[SimulationEvent]) -> tuple[NodeFate, ...]:
    """In the order in which they were begun."""
    touched = [fact for fact in facts if fact.what in _MOMENTS]
    return tuple(_node(name, touched) for name in dict.fromkeys(fact.node for fact in touched))


def _machine(name: str, facts: Sequence[SimulationEvent]) -> MachineFate:
    path: list[str] = []
    for fact in facts:
        path += [node for node in (fact.node, fact.to) if node and node not in path[-1:]]
    happened = {fact.what for fact in facts}
    return MachineFate(
        name=name,
        path=tuple(path),
        stopped=SimulationEventType.VM_STOPPED in happened,
        started=SimulationEventType.VM_STARTED in happened,
    )


def _node(name: str, facts: Sequence[SimulationEvent]) -> NodeFate:
    last = {fact.what: fact for fact in facts if fact.node == name}
    times = {word: last[what].time if what in last else None for what, word in _MOMENTS.items()}
    return NodeFate(
        name=name,
        os=last[SimulationEventType.CAME_BACK].detail if SimulationEventType.CAME_BACK in last else "",
        **times,
    )


_MOMENTS = {
    SimulationEventType.PRE_DRAIN_ASKED: "asked",
    SimulationEventType.DRAINED: "drained",
    SimulationEventType.KUBERNETES_UPGRADED: "kubernetes",
    SimulationEventType.WENT_DOWN: "down",
    SimulationEventType.CAME_BACK: "back",
    SimulationEventType.UNCORDONED: "released",
}
