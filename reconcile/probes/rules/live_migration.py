"""Explains why a virtual machine cannot be moved to another node: one table for the pre-flight check, the table of
virtual machines, the command that stops them, and rehearsals.

The first reasons are those of Harvester's vm-live-migrate-detector, in its order, and the detector stops what they hold
for. The others are what it does not look at: GPUs, pinned CPUs, CD-ROMs (Harvester's pre-check script, and "Live
Migration" of its documentation), what the other nodes lack (`migration_fit`), and what KubeVirt itself says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile import objects
from reconcile.probes.rules.migration_fit import Neighbours, unfit
from renderer.model.node_labels import is_witness
from renderer.model.path import look_up
from renderer.model.ref import Body
from renderer.model.sharing import ByIdentity

UPGRADE = "harvesterhci.io/upgrade"
"""A label of what an upgrade runs for itself, with the upgrade's name."""
_CPU_MANAGER = "cpumanager"
_ENDED = ("Succeeded", "Failed")
_ALONE = "there is no other node that runs virtual machines"
_MOST = 100_000  # machines of which is kept what keeps them
_NAMED = 3  # nodes and devices that are named; the others are counted
_DEVICES = ("spec", "domain", "devices")


class MigrationTargets:
    """The nodes that may run virtual machines, by name. Witnesses run none.

    What an affinity allows is worked out once, however many machines have it, and what keeps a machine once, however
    many ask. `instances` are all machines that run now, None where they are not known: then room is not checked.
    """

    def __init__(self, nodes: Iterable[Body], instances: Iterable[Body] | None = None) -> None:
        self._nodes = {name_of(node): node for node in nodes if not is_witness(node)}
        self._free = [name for name, node in self._nodes.items() if not is_cordoned(node)]
        self._allowed: dict[str, tuple[str, ...]] = {}
        self._neighbours = None if instances is None else Neighbours(instances, self._nodes)
        self._unfit: ByIdentity[list[str]] = ByIdentity(1)
        self.known: ByIdentity[tuple[Obstacle, ...]] = ByIdentity(_MOST)

    def __len__(self) -> int:
        return len(self._nodes)

    def allowed(self, instance: Body) -> tuple[str, ...]:
        """The names of the nodes that are not cordoned and that its required node affinity takes."""
        affinity = {"affinity": look_up(instance, ("spec", "affinity"))}
        key = repr(affinity)
        if key not in self._allowed:
            self._allowed[key] = tuple(name for name in self._free if objects.is_selected(self._nodes[name], affinity))
        return self._allowed[key]

    def has_other(self, instance: Body) -> bool:
        """True if one of them is another node than the one that it runs on."""
        here = node_of(instance)
        return any(name != here for name in self.allowed(instance))

    def has_other_with_cpu_manager(self, instance: Body) -> bool:
        here = node_of(instance)
        others = (self._nodes[name] for name in self.allowed(instance) if name != here)
        return any(objects.label(node, _CPU_MANAGER) == "true" for node in others)

    def unfit(self, instance: Body) -> list[str]:
        """Says of each of the other nodes that are allowed why it cannot take the instance; none if one of them can."""
        known = self._unfit.get(instance)
        if known is not None:
            return known
        here = self._nodes.get(node_of(instance), {})
        return self._unfit.put(instance, self._said_of_all(instance, lambda node: unfit(instance, here, node)))

    def full(self, instance: Body) -> list[str]:
        """The same of the nodes that could take it, if there were room beside the machines that run there."""
        known = self._neighbours
        here = self._nodes.get(node_of(instance), {})
        if known is None:
            return []
        return self._said_of_all(instance, lambda node: unfit(instance, here, node) or known.crowded(instance, node))

    def _said_of_all(self, instance: Body, why: Callable[[Body], str]) -> list[str]:
        """Stops at the first node without a reason."""
        found: list[str] = []
        for name in self.allowed(instance):
            if name == node_of(instance):
                continue
            said = why(self._nodes[name])
            if not said:
                return []
            found.append(f"{name} {said}")
        return found

    def refusals(self, instance: Body) -> list[str]:
        """Gives the reason why each other node is not a target."""
        here, allowed = node_of(instance), self.allowed(instance)
        others = (name for name in self._nodes if name != here and name not in allowed)
        return [
            f"{name} {'is cordoned' if is_cordoned(self._nodes[name]) else 'does not match its node affinity'}"
            for name in others
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """A reason for which an instance cannot be moved. `detected`: Harvester's detector stops a machine for it. `waits`:
    nothing stops it for that, since room may be made. `migrates`: Harvester's documentation counts it, and KubeVirt
    migrates the instance all the same."""

    reason: str
    text: str
    detected: bool
    waits: bool
    migrates: bool


def obstacles(instance: Body, targets: MigrationTargets) -> tuple[Obstacle, ...]:
    """All that hold, in the order of the table; none if the instance can be moved. Of the only node, nothing else is
    said."""
    known = targets.known.get(instance)
    return targets.known.put(instance, tuple(_obstacles(instance, targets))) if known is None else known


def _obstacles(instance: Body, targets: MigrationTargets) -> Iterator[Obstacle]:
    if len(targets) == 1:
        yield Obstacle(reason="OnlyNode", text=_ALONE, detected=True, waits=False, migrates=False)
        return
    for row in _TABLE:
        if text := row.why(instance, targets):
            yield Obstacle(reason=row.reason, text=text, detected=row.detected, waits=row.waits, migrates=row.migrates)


def is_overlooked(found: Collection[Obstacle]) -> bool:
    """True if KubeVirt cannot migrate the instance, and Harvester's detector does not stop it for any of these."""
    return not any(each.detected for each in found) and any(not (each.migrates or each.waits) for each in found)


def runs(instance: Body) -> bool:
    """True if it is on a node, or on its way there."""
    return look_up(instance, ("status", "phase")) not in _ENDED


def is_waited_for(instance: Body) -> bool:
    """True if a drain waits until it has left its node: the pre-drain Job counts all but those that have succeeded."""
    return str(look_up(instance, ("status", "phase"))) != "Succeeded"


def is_the_upgrades(instance: Body) -> bool:
    """True for what an upgrade runs for itself."""
    return bool(objects.label(instance, UPGRADE))


def is_restored(instance: Body) -> bool:
    """True if it is to be started again: a paused one stays off, one of the upgrade's own is nobody's."""
    paused = objects.condition(instance, "Paused")
    return not (paused and paused.status == "True") and not is_the_upgrades(instance)


def node_of(instance: Body) -> str:
    return str(look_up(instance, ("status", "nodeName")) or "")


def name_of(body: Body) -> str:
    return str(look_up(body, ("metadata", "name")) or "")


def is_cordoned(node: Body) -> bool:
    return look_up(node, ("spec", "unschedulable")) is True


def kubevirt_message(instance: Body) -> str:
    """KubeVirt's own words on why it cannot migrate the instance; empty if it does not say that."""
    found = objects.condition(instance, "LiveMigratable")
    if found is None or found.status != "False":
        return ""
    return found.message or found.reason or "condition LiveMigratable is False"


# -------------------------------------------------------------------------------------------------------- the table


def devices_of(instance: Body, kind: str) -> tuple[str, ...]:
    """The devices of a kind (`hostDevices`, `gpus`): `name (resource)`, the resource where one is named."""
    found = look_up(instance, (*_DEVICES, kind))
    return tuple(_device(each) for each in objects.items(found) if isinstance(each, Mapping))


def _device(device: Mapping[str, Any]) -> str:
    name, resource = device.get("name"), device.get("deviceName")
    return f"{name} ({resource})" if name and resource else str(name or resource or "without a name")


def _selector(instance: Body, _: MigrationTargets) -> str:
    selector = look_up(instance, ("spec", "nodeSelector"))
    if not isinstance(selector, Mapping) or not selector:
        return ""
    return f"it has a node selector: {', '.join(f'{key}={value}' for key, value in selector.items())}"


def _host_devices(instance: Body, _: MigrationTargets) -> str:
    return _listing("it has devices of the host: ", devices_of(instance, "hostDevices"))


def _gpus(instance: Body, _: MigrationTargets) -> str:
    return _listing("it has GPUs: ", devices_of(instance, "gpus"))


def _no_other_node(instance: Body, targets: MigrationTargets) -> str:
    if targets.has_other(instance):
        return ""
    return _listing("no other node can run it: ", targets.refusals(instance)) or "no other node can run it"


def _no_fitting_node(instance: Body, targets: MigrationTargets) -> str:
    return _listing("no other node can run it: ", targets.unfit(instance))


def _no_room(instance: Body, targets: MigrationTargets) -> str:
    if targets.unfit(instance):
        return ""
    return _listing("no other node has room for it: ", targets.full(instance))


def _pinned_cpus(instance: Body, targets: MigrationTargets) -> str:
    if look_up(instance, ("spec", "domain", "cpu", "dedicatedCpuPlacement")) is not True:
        return ""
    if not targets.has_other(instance) or targets.has_other_with_cpu_manager(instance):
        return ""
    return "its CPUs are pinned, and no other node that could run it has the CPU manager"


def _cd_roms(instance: Body, _: MigrationTargets) -> str:
    disks = objects.items(look_up(instance, (*_DEVICES, "disks")))
    names = [str(disk.get("name")) for disk in disks if isinstance(disk, Mapping) and "cdrom" in disk]
    return _listing("it has a CD-ROM: ", names)


def _kubevirt(instance: Body, _: MigrationTargets) -> str:
    words = kubevirt_message(instance)
    return f"KubeVirt says: {words}" if words else ""


def _listing(head: str, names: Iterable[str]) -> str:
    named = list(names)
    more = [f"and {len(named) - _NAMED} more"] if len(named) > _NAMED else []
    return head + ", ".join([*named[:_NAMED], *more]) if named else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    reason: str
    why: Callable[[Body, MigrationTargets], str]
    detected: bool = False
    waits: bool = False
    migrates: bool = False


_TABLE = (
    _Row(reason="NodeSelector", why=_selector, detected=True),
    _Row(reason="HostDevices", why=_host_devices, detected=True),
    _Row(reason="NoOtherNode", why=_no_other_node, detected=True),
    _Row(reason="NoFittingNode", why=_no_fitting_node),
    _Row(reason="NoRoom", why=_no_room, waits=True),
    _Row(reason="GPUs", why=_gpus),
    _Row(reason="PinnedCPUs", why=_pinned_cpus),
    _Row(reason="CDROM", why=_cd_roms, migrates=True),
    _Row(reason="NotLiveMigratable", why=_kubevirt),
)
