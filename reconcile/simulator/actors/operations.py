"""What can be told to go wrong: the acts of the played world, as data for the parser and for help texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from reconcile.simulator.actors.fault_plan import FaultMode


class OperationTarget(StrEnum):
    """What an act takes place on, if it can be told apart."""

    NOTHING = ""
    NODE = "node"
    MACHINE = "virtual machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedOperation:
    """`troubles` are those that make sense for it."""

    name: str
    what: str
    on: OperationTarget = OperationTarget.NOTHING
    troubles: frozenset[FaultMode] = frozenset((FaultMode.STALL, FaultMode.SLOW))
    is_job: bool = False


_FAILS = frozenset((FaultMode.FAIL, FaultMode.STALL, FaultMode.SLOW))
_ASKS = frozenset((FaultMode.REPEAT, FaultMode.STALL, FaultMode.SLOW))


def _job(name: str, what: str, on: OperationTarget = OperationTarget.NODE) -> SimulatedOperation:
    return SimulatedOperation(name=name, what=f"the Job {what}", on=on, troubles=frozenset(FaultMode), is_job=True)


_OPERATIONS = (
    SimulatedOperation(name="image-import", what="Harvester imports the ISO", troubles=_FAILS),
    SimulatedOperation(name="repo", what="a pod of the repository starts", on=OperationTarget.NODE),
    SimulatedOperation(name="release-file", what="the repository answers with the release file", troubles=_FAILS),
    SimulatedOperation(name="image-list", what="the repository answers with an image list", troubles=_FAILS),
    _job("image-preload", "that loads images on a node"),
    _job("cluster-upgrade", "that upgrades the cluster's services", OperationTarget.NOTHING),
    SimulatedOperation(name="kubevirt", what="KubeVirt rolls out its new version"),
    _job("skip-manifest-apply", "that keeps RKE2 from re-applying charts"),
    _job("skip-manifest-remove", "that takes that back"),
    SimulatedOperation(name="rancher", what="Rancher picks a machine", on=OperationTarget.NODE),
    SimulatedOperation(
        name="one-at-a-time",
        what="Rancher keeps to one machine; if that fails it asks for two",
        troubles=frozenset((FaultMode.FAIL,)),
    ),
    SimulatedOperation(
        name="pre-drain-request", what="Rancher asks before a drain", on=OperationTarget.NODE, troubles=_ASKS
    ),
    _job("pre-drain", "before a drain"),
    SimulatedOperation(
        name="vm-migration", what="a virtual machine moves", on=OperationTarget.MACHINE, troubles=_FAILS
    ),
    SimulatedOperation(name="drain", what="Rancher drains a node", on=OperationTarget.NODE),
    SimulatedOperation(name="kubernetes", what="Rancher upgrades a node's Kubernetes", on=OperationTarget.NODE),
    SimulatedOperation(
        name="post-drain-request", what="Rancher asks after a drain", on=OperationTarget.NODE, troubles=_ASKS
    ),
    _job("post-drain", "after a drain"),
    _job("single-node-upgrade", "that upgrades the only node"),
    SimulatedOperation(
        name="reboot",
        what="a node reboots; if that fails it comes up with the OS that it had",
        on=OperationTarget.NODE,
        troubles=_FAILS,
    ),
    SimulatedOperation(name="volume-rebuild", what="Longhorn rebuilds a volume"),
    _job("restore-vm", "that starts virtual machines again"),
    _job("image-cleanup", "that removes old images from a node"),
    SimulatedOperation(name="system-upgrade-controller", what="the controller notices that a node's Job has ended"),
    SimulatedOperation(name="addon", what="an add-on is switched on or off"),
)

SIMULATED_OPERATIONS: Mapping[str, SimulatedOperation] = {operation.name: operation for operation in _OPERATIONS}


def with_jobs(names: tuple[str, ...]) -> Mapping[str, SimulatedOperation]:
    """The acts, and Jobs of components that only the plan at hand has."""
    own = {name: _job(name, f"of component {name}") for name in names if name not in SIMULATED_OPERATIONS}
    return {**SIMULATED_OPERATIONS, **own}
