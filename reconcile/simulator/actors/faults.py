"""The faults of a simulation: the operations, the ways in which each can go wrong, and what a user has chosen.

A `FaultPlan` is data. The actors ask a `FaultInjector`, which also remembers what was asked: a fault on an operation
that never takes place is not injected, and is reported.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum


class FaultMode(StrEnum):
    """The names of the options of `rehearse`."""

    FAIL = "fail"
    STALL = "stall"
    SLOW = "slow"
    REPEAT = "repeat"


class OperationTarget(StrEnum):
    """The kind of thing that `on NAME` names; nothing where an operation takes place once for the whole cluster."""

    NOTHING = ""
    NODE = "node"
    VIRTUAL_MACHINE = "virtual machine"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedOperation:
    """`modes` are those that make a difference: tests/test_faults.py tries each of them."""

    name: str
    what: str
    on: OperationTarget = OperationTarget.NOTHING
    modes: frozenset[FaultMode] = frozenset((FaultMode.STALL, FaultMode.SLOW))
    is_job: bool = False


_NODE = OperationTarget.NODE
_FAIL = frozenset((FaultMode.FAIL, FaultMode.STALL, FaultMode.SLOW))
_REPEAT = frozenset((FaultMode.REPEAT, FaultMode.STALL, FaultMode.SLOW))


def _job(name: str, what: str, on: OperationTarget = _NODE) -> SimulatedOperation:
    return SimulatedOperation(name=name, what=f"the Job {what}", on=on, modes=frozenset(FaultMode), is_job=True)


_OPERATIONS = (
    SimulatedOperation(name="image-import", what="Harvester imports the ISO image", modes=_FAIL),
    SimulatedOperation(name="repo", what="a pod of the upgrade repository starts", on=_NODE),
    SimulatedOperation(name="release-file", what="the repository serves the release file", modes=_FAIL),
    SimulatedOperation(name="image-list", what="the repository serves an image list", modes=_FAIL),
    _job("image-preload", "that loads images on a node"),
    _job("cluster-upgrade", "that upgrades the cluster's services", OperationTarget.NOTHING),
    SimulatedOperation(name="kubevirt", what="KubeVirt rolls out its new version"),
    _job("host-check", "that looks at a node's host"),
    _job("skip-manifest-apply", "that keeps RKE2 from applying its charts again"),
    _job("skip-manifest-remove", "that lets RKE2 apply its charts again"),
    SimulatedOperation(name="rancher", what="Rancher starts on a node", on=_NODE),
    SimulatedOperation(
        name="one-at-a-time",
        what="Rancher upgrades one node at a time; on failure it upgrades two",
        modes=frozenset((FaultMode.FAIL,)),
    ),
    SimulatedOperation(name="pre-drain-request", what="Rancher asks for the pre-drain hook", on=_NODE, modes=_REPEAT),
    _job("pre-drain", "before a drain"),
    SimulatedOperation(
        name="vm-migration", what="a virtual machine is migrated", on=OperationTarget.VIRTUAL_MACHINE, modes=_FAIL
    ),
    SimulatedOperation(name="drain", what="Rancher drains a node", on=_NODE),
    SimulatedOperation(name="kubernetes", what="Rancher upgrades a node's Kubernetes", on=_NODE),
    SimulatedOperation(name="post-drain-request", what="Rancher asks for the post-drain hook", on=_NODE, modes=_REPEAT),
    _job("post-drain", "after a drain"),
    _job("single-node-upgrade", "that upgrades the only node"),
    SimulatedOperation(
        name="reboot", what="a node reboots; on failure it boots the OS that it had", on=_NODE, modes=_FAIL
    ),
    SimulatedOperation(name="volume-rebuild", what="Longhorn rebuilds a volume"),
    _job("restore-vm", "that starts virtual machines again"),
    _job("image-cleanup", "that removes old images from a node"),
    SimulatedOperation(
        name="system-upgrade-controller", what="system-upgrade-controller notices that a node's Job has finished"
    ),
    SimulatedOperation(name="addon", what="an add-on is enabled or disabled"),
)

SIMULATED_OPERATIONS: Mapping[str, SimulatedOperation] = {operation.name: operation for operation in _OPERATIONS}


def with_jobs(names: Iterable[str]) -> Mapping[str, SimulatedOperation]:
    """The operations, and the Jobs of components that only the plan at hand has."""
    own = {name: _job(name, f"of component {name}") for name in names if name not in SIMULATED_OPERATIONS}
    return {**SIMULATED_OPERATIONS, **own}


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """`target` is a node or a virtual machine (`namespace/name`); empty for any. `times`: how many tries fail, or how
    often it is repeated; None for each, or once. `lasts` is how long a slow operation takes."""

    mode: FaultMode
    operation: str
    target: str = ""
    times: int | None = None
    lasts: timedelta | None = None

    def is_for(self, mode: FaultMode, operation: str, target: str) -> bool:
        return (self.mode, self.operation) == (mode, operation) and self.target in ("", target)

    @property
    def option(self) -> str:
        return f"--{self.mode}"

    @property
    def value(self) -> str:
        """As it is written on the command line, without times and duration."""
        return f"{self.operation}{_on(self.target)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiOutage:
    """The API server, and Rancher with it, is unreachable for this long once the Job has begun."""

    lasts: timedelta
    operation: str = "cluster-upgrade"
    target: str = ""

    def is_for(self, operation: str, target: str) -> bool:
        return self.operation == operation and self.target in ("", target)

    @property
    def option(self) -> str:
        return "--away"

    @property
    def value(self) -> str:
        return f"{self.operation}{_on(self.target)}"


def _on(target: str) -> str:
    return f" on {target}" if target else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """Everything that is to go wrong; by default nothing."""

    faults: tuple[InjectedFault, ...] = ()
    outages: tuple[ApiOutage, ...] = ()


@dataclass
class FaultInjector:
    """Decides what goes wrong with an operation that takes place now. Actors ask only when it does."""

    plan: FaultPlan
    operations: set[str] = field(default_factory=set)
    """Those that have taken place."""
    _injected: set[InjectedFault | ApiOutage] = field(default_factory=set)

    def fails(self, operation: str, target: str = "", tried: int = 0) -> bool:
        """True if the operation fails once more, after this many tries."""
        found = self._of(FaultMode.FAIL, operation, target)
        return any(fault.times is None or tried < fault.times for fault in found)

    def lasts(self, operation: str, usual: timedelta, target: str = "") -> timedelta | None:
        """The duration of the operation; None if it never ends."""
        if self._of(FaultMode.STALL, operation, target):
            return None
        slow = [fault.lasts for fault in self._of(FaultMode.SLOW, operation, target) if fault.lasts is not None]
        return max(slow, default=usual)

    def repeats(self, operation: str, target: str = "") -> int:
        """The number of times that the operation is repeated."""
        return sum(fault.times or 1 for fault in self._of(FaultMode.REPEAT, operation, target))

    def outage(self, operation: str, target: str = "") -> timedelta | None:
        found = [outage for outage in self.plan.outages if outage.is_for(operation, target)]
        self._injected.update(found)
        return max((outage.lasts for outage in found), default=None)

    @property
    def not_injected(self) -> tuple[InjectedFault | ApiOutage, ...]:
        """The faults whose operation has not taken place on their target."""
        every: tuple[InjectedFault | ApiOutage, ...] = (*self.plan.faults, *self.plan.outages)
        return tuple(each for each in every if each not in self._injected)

    def _of(self, mode: FaultMode, operation: str, target: str) -> list[InjectedFault]:
        self.operations.add(operation)
        found = [fault for fault in self.plan.faults if fault.is_for(mode, operation, target)]
        self._injected.update(found)
        return found
