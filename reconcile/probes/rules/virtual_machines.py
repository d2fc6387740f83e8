"""Determines what a drain does to virtual machines, and which of them block an upgrade.

The pre-drain Job stops what cannot be moved, taints the node, and waits until no instance is left on it: KubeVirt moves
machines whose eviction strategy allows it. The drain waits forever for machines that are neither stopped nor moved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from reconcile import objects
from reconcile.probes.look import NODES, Group, ReadFailure
from reconcile.probes.rules.call import RuleCall, all_of, listed
from reconcile.probes.rules.live_migration import (
    MigrationTargets,
    Obstacle,
    is_overlooked,
    is_restored,
    is_the_upgrades,
    is_waited_for,
    obstacles,
    runs,
)
from reconcile.probes.verdict import Verdict, failed, passed, unread
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of

INSTANCES = Group(api_version="kubevirt.io/v1", kind="VirtualMachineInstance")
MACHINES = Group(api_version="kubevirt.io/v1", kind="VirtualMachine")
KUBEVIRTS = Group(api_version="kubevirt.io/v1", kind="KubeVirt")
_MOVED = ("LiveMigrate", "LiveMigrateIfPossible")
_NOT_MOVED = "None"  # KubeVirt's own default
OVERLOOKED = "the upgrade's detector does not stop it for that, and its node's drain waits until somebody does"
_MIGRATES = "KubeVirt may migrate it all the same"
_FAILED = "its instance has failed and is still there, and the drain waits until it is gone"


class MachineOutcome(StrEnum):
    """The lot of a virtual machine when its node is drained."""

    MOVES = "moves"
    STARTED_AGAIN = "startedAgain"
    STOPPED = "stopped"
    MAY_BLOCK = "mayBlock"
    BLOCKS = "blocks"
    OFF = "off"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """`why` is in our words, one text a reason."""

    outcome: MachineOutcome
    why: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """All that decides on every machine: where it may go, what KubeVirt does with one that does not say, and whether
    the plan starts again what it stops."""

    targets: MigrationTargets
    eviction_strategy: str = _NOT_MOVED
    restores: bool = False

    def fate(self, instance: Body, *, has_machine: bool = True) -> Fate:
        """`has_machine`: there is a VirtualMachine of this instance, by which it can be stopped and started."""
        if not is_waited_for(instance):
            return Fate(outcome=MachineOutcome.OFF)
        if not runs(instance):
            return Fate(outcome=MachineOutcome.BLOCKS, why=(_FAILED,))
        found = obstacles(instance, self.targets)
        if all(each.migrates for each in found):
            return self._moved(instance, tuple(each.text for each in found))
        outcome, more = self._kept(instance, found, has_machine)
        return Fate(outcome=outcome, why=(*(each.text for each in found), *more))

    def _kept(self, instance: Body, found: Collection[Obstacle], has_machine: bool) -> tuple[MachineOutcome, list[str]]:
        """Of a machine that KubeVirt does not move; the reasons beside what was found."""
        if all(each.waits or each.migrates for each in found):
            return MachineOutcome.BLOCKS, ["its node's drain waits until it can be moved"]
        if not has_machine:
            return MachineOutcome.BLOCKS, ["it has no VirtualMachine through which it could be stopped"]
        if is_overlooked(found):
            return MachineOutcome.MAY_BLOCK, [OVERLOOKED]
        if not self.restores:
            return MachineOutcome.STOPPED, []
        if is_restored(instance):
            return MachineOutcome.STARTED_AGAIN, []
        return MachineOutcome.STOPPED, ["it is paused, and stays off"]

    def _moved(self, instance: Body, why: tuple[str, ...]) -> Fate:
        strategy = look_up(instance, ("spec", "evictionStrategy")) or self.eviction_strategy
        if strategy in _MOVED:
            return Fate(outcome=MachineOutcome.MOVES, why=why)
        not_moved = f"its eviction strategy is {strategy}, so KubeVirt does not migrate it, and nothing stops it"
        return Fate(outcome=MachineOutcome.BLOCKS, why=(*why, not_moved))


def default_strategy(kubevirts: Iterable[Body]) -> str:
    """The eviction strategy of an instance that names none."""
    stated = (look_up(body, ("spec", "configuration", "evictionStrategy")) for body in kubevirts)
    return next((str(strategy) for strategy in stated if strategy), _NOT_MOVED)


def machine_names(instances: Iterable[Body], machines: Iterable[Body]) -> frozenset[tuple[str, str]]:
    """Namespace and name of the instances that a VirtualMachine has."""
    owned = (instance for instance in instances if has_machine(instance))
    return frozenset((ref_of(body).namespace, ref_of(body).name) for body in (*machines, *owned))


def has_machine(instance: Body) -> bool:
    """True if a VirtualMachine says that the instance is its own."""
    owners = objects.items(look_up(instance, ("metadata", "ownerReferences")))
    return any(look_up(owner, ("kind",)) == MACHINES.kind for owner in owners)


# ----------------------------------------------------------------------------------------------------------- the rules


def to_stop(call: RuleCall) -> Verdict:
    """Passes, and has seen the names of the machines that the detector stops on the node and that are to be started
    again: `namespace/name` with commas."""
    found = listed(call, INSTANCES, NODES, MACHINES)
    if isinstance(found, Verdict):
        return found
    instances, nodes, machines = found
    targets, startable = MigrationTargets(nodes), machine_names(instances, machines)
    here = [each for each in instances if look_up(each, ("status", "nodeName")) == call.text("node") and runs(each)]
    tied = [each for each in here if is_restored(each) and any(it.detected for it in obstacles(each, targets))]
    names = sorted(f"{ref_of(each).namespace}/{ref_of(each).name}" for each in tied)
    seen = ",".join(name for name in names if tuple(name.split("/")) in startable)
    return replace(passed(f"{len(names)} virtual machines"), seen=seen)


def can_be_moved(call: RuleCall) -> Verdict:
    """Every instance but the upgrade's own."""
    return _each_that_runs(call, _can_be_moved)


def _can_be_moved(instance: Body, targets: MigrationTargets) -> Verdict:
    """Room may be made for those that nothing else keeps; whether they leave their node is another check's."""
    found = [each for each in obstacles(instance, targets) if not each.waits]
    if not found:
        return passed("it can be moved")
    more = [OVERLOOKED] if is_overlooked(found) else [_MIGRATES] if all(each.migrates for each in found) else []
    return failed("; ".join([*(each.text for each in found), *more]), ref_of(instance))


def leave(call: RuleCall) -> Verdict:
    """Every instance leaves its node when that is drained: it is moved, or stopped."""
    found = listed(call, INSTANCES, NODES, MACHINES, KUBEVIRTS)
    if isinstance(found, Verdict):
        return found
    instances, nodes, machines, kubevirts = found
    drain = Drain(targets=_targets(call, nodes, instances), eviction_strategy=default_strategy(kubevirts))
    known = machine_names(instances, machines)
    waited_for = (each for each in instances if is_waited_for(each) and not is_the_upgrades(each))
    return all_of((_leaves(instance, drain, known) for instance in waited_for), "virtual machines")


def _leaves(instance: Body, drain: Drain, known: frozenset[tuple[str, str]]) -> Verdict:
    ref = ref_of(instance)
    fate = drain.fate(instance, has_machine=(ref.namespace, ref.name) in known)
    if fate.outcome is not MachineOutcome.BLOCKS:
        return passed(fate.outcome.value)
    return failed("; ".join(fate.why), ref)


def overlooked(call: RuleCall) -> Verdict:
    """Every instance that KubeVirt cannot migrate is one that Harvester's detector stops."""
    return _each_that_runs(call, _overlooked)


def _overlooked(instance: Body, targets: MigrationTargets) -> Verdict:
    found = obstacles(instance, targets)
    if not is_overlooked(found):
        return passed("it is stopped or can be moved")
    return failed("; ".join(each.text for each in found if not each.migrates), ref_of(instance))


def _each_that_runs(call: RuleCall, judged: Callable[[Body, MigrationTargets], Verdict]) -> Verdict:
    """Of all instances but the upgrade's own."""
    found = listed(call, INSTANCES, NODES)
    if isinstance(found, Verdict):
        return found
    instances, nodes = found
    targets = _targets(call, nodes, instances)
    users = (instance for instance in instances if runs(instance) and not is_the_upgrades(instance))
    return all_of((judged(instance, targets) for instance in users), "virtual machines")


def _targets(call: RuleCall, nodes: tuple[Body, ...], instances: tuple[Body, ...]) -> MigrationTargets:
    """The same for all rules, so that each machine is looked at once."""
    return call.scope.worked_out.once(
        "migrationTargets", (nodes, instances), lambda: MigrationTargets(nodes, instances)
    )


def hotplug_settled(call: RuleCall) -> Verdict:
    """Of a VirtualMachine: no volume waits to be plugged in or out, and none is plugged in that its template lacks."""
    requests = objects.items(look_up(call.body, ("status", "volumeRequests")))
    if requests:
        return failed(f"volumes are waiting to be plugged or unplugged: {', '.join(map(_requested, requests))}")
    ref = Ref(
        api_version=INSTANCES.api_version,
        kind=INSTANCES.kind,
        namespace=call.object.namespace,
        name=call.object.name,
    )
    instance = call.look.get(ref)
    if isinstance(instance, ReadFailure):
        return unread(ref, instance)
    kept = {_name_in(volume) for volume in _volumes(call.body, "spec", "template", "spec")}
    plugged = [_name_in(volume) for volume in _volumes(instance or {}, "spec") if _is_hotplugged(volume)]
    lost = [name for name in plugged if name not in kept]
    if instance is None or not runs(instance) or not lost:
        return passed("no hot-plugged volume is missing in its template")
    return failed(f"hot-plugged volumes are missing in its template, and are lost with the instance: {', '.join(lost)}")


def _requested(request: Any) -> str:
    options = ("addVolumeOptions", "add"), ("removeVolumeOptions", "remove")
    named = ((verb, look_up(request, (key, "name"))) for key, verb in options)
    return next((f"{verb} {name}" for verb, name in named if name), "a volume without a name")


def _volumes(body: Body, *path: str) -> list[Mapping[str, Any]]:
    found = objects.items(look_up(body, (*path, "volumes")))
    return [volume for volume in found if isinstance(volume, Mapping)]


def _name_in(volume: Mapping[str, Any]) -> str:
    return str(volume.get("name") or "")


def _is_hotplugged(volume: Mapping[str, Any]) -> bool:
    return any(look_up(volume, (source, "hotpluggable")) is True for source in ("persistentVolumeClaim", "dataVolume"))
