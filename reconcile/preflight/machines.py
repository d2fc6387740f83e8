"""The table of virtual machines: for each of them, what becomes of it when its node is drained, and why. Pure.

A machine that moves may be met again on a node that is drained later; where it would fare differently there, that is
said beside. The rules are those of `probes.rules.virtual_machines`, which the checks and the helpers read too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from reconcile import objects
from reconcile.probes.look import NODES, Look, ReadFailure
from reconcile.probes.rules.live_migration import (
    MigrationTargets,
    is_the_upgrades,
    is_waited_for,
    kubevirt_message,
    node_of,
)
from reconcile.probes.rules.virtual_machines import (
    INSTANCES,
    KUBEVIRTS,
    MACHINES,
    Drain,
    Fate,
    MachineOutcome,
    default_strategy,
    machine_names,
)
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of

_NameKey = tuple[str, str]
_PAUSE_NODES = ("spec", "nodeUpgradeOption", "pauseNodes")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineRow:
    """A virtual machine. `node` is where it runs, empty if it runs nowhere; `kubevirt` are KubeVirt's own words, empty
    if it says that the machine can be migrated; `later` are nodes on which it would not fare as here."""

    namespace: str
    name: str
    node: str = ""
    outcome: MachineOutcome
    why: tuple[str, ...] = ()
    kubevirt: str = ""
    later: tuple[LaterNode, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterNode:
    """A node that a machine may have been moved to when it is drained in turn."""

    node: str
    outcome: MachineOutcome
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineTable:
    """The machines in the order of their nodes and names, those that are off last. `paused` are those of their nodes
    before which the plan pauses. `read_failures` are what could not be read: without instances or nodes there are no
    rows, without the others they are as if there were none."""

    rows: tuple[MachineRow, ...]
    paused: tuple[str, ...] = ()
    read_failures: tuple[ReadFailure, ...] = ()

    @property
    def counts(self) -> Mapping[MachineOutcome, int]:
        found = Counter(row.outcome for row in self.rows)
        return {outcome: found[outcome] for outcome in MachineOutcome}


def machine_table(look: Look, plan: Body) -> MachineTable:
    """`plan` is empty if there is none: then nothing is started again. The upgrade's own machines are left out."""
    read = {group: look.list(group) for group in (INSTANCES, NODES, MACHINES, KUBEVIRTS)}
    failures = tuple(found for found in read.values() if isinstance(found, ReadFailure))
    if any(isinstance(read[group], ReadFailure) for group in (INSTANCES, NODES)):
        return MachineTable(rows=(), read_failures=failures)
    instances = [body for body in _seen(read[INSTANCES]) if not is_the_upgrades(body)]
    machines = [body for body in _seen(read[MACHINES]) if not is_the_upgrades(body)]
    drain = Drain(
        targets=MigrationTargets(_seen(read[NODES]), _seen(read[INSTANCES])),
        eviction_strategy=default_strategy(_seen(read[KUBEVIRTS])),
        restores=look_up(plan, ("spec", "restoreVM")) is True,
    )
    known = None if isinstance(read[MACHINES], ReadFailure) else machine_names(instances, machines)
    rows = [*_running(instances, drain, known), *_off(machines, instances)]
    nodes = {row.node for row in rows}.intersection(map(str, objects.items(look_up(plan, _PAUSE_NODES))))
    return MachineTable(rows=tuple(sorted(rows, key=_order)), paused=tuple(sorted(nodes)), read_failures=failures)


def _seen(found: tuple[Body, ...] | ReadFailure) -> tuple[Body, ...]:
    return () if isinstance(found, ReadFailure) else found


def _order(row: MachineRow) -> tuple[bool, str, str, str]:
    return row.outcome is MachineOutcome.OFF, row.node, row.namespace, row.name


def _running(instances: Iterable[Body], drain: Drain, known: frozenset[_NameKey] | None) -> Iterator[MachineRow]:
    """`known` is None where nobody could look whether a machine is there: then it is taken to be."""
    for instance in instances:
        if not is_waited_for(instance):
            continue
        ref = ref_of(instance)
        fate = drain.fate(instance, has_machine=known is None or (ref.namespace, ref.name) in known)
        yield _row(ref, instance, fate, tuple(_later(instance, fate, drain)))


def _row(ref: Ref, instance: Body, fate: Fate, later: tuple[LaterNode, ...]) -> MachineRow:
    return MachineRow(
        namespace=ref.namespace,
        name=ref.name,
        node=node_of(instance),
        outcome=fate.outcome,
        why=fate.why,
        kubevirt=kubevirt_message(instance),
        later=later,
    )


def _later(instance: Body, fate: Fate, drain: Drain) -> Iterator[LaterNode]:
    """Of a machine that moves to the only node that takes it: it cannot go back where it was."""
    allowed = drain.targets.allowed(instance)
    here = node_of(instance)
    if fate.outcome is not MachineOutcome.MOVES or len(allowed) != 1 or here in allowed:
        return
    why = f"it was moved there from {here}, and no other node can run it"
    yield LaterNode(
        node=allowed[0],
        outcome=MachineOutcome.STARTED_AGAIN if drain.restores else MachineOutcome.STOPPED,
        why=(why,),
    )


def _off(machines: Iterable[Body], instances: Iterable[Body]) -> Iterator[MachineRow]:
    running = {(ref_of(body).namespace, ref_of(body).name) for body in instances if is_waited_for(body)}
    for machine in machines:
        ref = ref_of(machine)
        if (ref.namespace, ref.name) not in running:
            yield MachineRow(namespace=ref.namespace, name=ref.name, outcome=MachineOutcome.OFF)
