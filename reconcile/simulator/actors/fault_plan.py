"""What shall go wrong, as data: cues that name an act, where it takes place, and the trouble. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class FaultMode(StrEnum):
    FAIL = "fail"
    STALL = "stall"
    SLOW = "slow"
    REPEAT = "repeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """`target` is a node (a virtual machine for `vm-migration`); empty for any. `times`: so many tries fail, or so
    often it is repeated; None for each. `lasts` is how long a slow act takes."""

    mode: FaultMode
    operation: str
    target: str = ""
    times: int | None = None
    lasts: timedelta | None = None

    def is_for(self, mode: FaultMode, operation: str, target: str) -> bool:
        return (self.mode, self.operation) == (mode, operation) and self.target in ("", target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """The API server, and Rancher with it, goes away for so long once the act has begun."""

    lasts: timedelta
    operation: str = "cluster-upgrade"
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """All that shall go wrong; by default nothing."""

    injected: tuple[InjectedFault, ...] = ()
    absences: tuple[Absence, ...] = ()

    def fails(self, operation: str, target: str = "", tried: int = 0) -> bool:
        """Whether the act fails once more, after so many tries."""
        return any(
            fault.times is None or tried < fault.times for fault in self._injected(FaultMode.FAIL, operation, target)
        )

    def lasts(self, operation: str, usual: timedelta, target: str = "") -> timedelta | None:
        """How long the act takes; None if it never ends."""
        if any(self._injected(FaultMode.STALL, operation, target)):
            return None
        slow = [fault.lasts for fault in self._injected(FaultMode.SLOW, operation, target) if fault.lasts is not None]
        return max(slow, default=usual)

    def repeats(self, operation: str, target: str = "") -> int:
        """How often the act is done again."""
        return sum(fault.times or 1 for fault in self._injected(FaultMode.REPEAT, operation, target))

    def absence(self, operation: str, target: str = "") -> timedelta | None:
        found = [each.lasts for each in self.absences if each.operation == operation and each.target in ("", target)]
        return max(found, default=None)

    def _injected(self, mode: FaultMode, operation: str, target: str) -> tuple[InjectedFault, ...]:
        return tuple(fault for fault in self.injected if fault.is_for(mode, operation, target))
