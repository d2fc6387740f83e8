"""What shall go wrong, as data: cues that name an act, where it takes place, and the trouble. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class Trouble(StrEnum):
    FAIL = "fail"
    STALL = "stall"
    SLOW = "slow"
    REPEAT = "repeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """`target` is a node (a virtual machine for `vm-migration`); empty for any. `times`: so many tries fail, or so
    often it is repeated; None for each. `lasts` is how long a slow act takes."""

    trouble: Trouble
    act: str
    target: str = ""
    times: int | None = None
    lasts: timedelta | None = None

    def is_for(self, trouble: Trouble, act: str, target: str) -> bool:
        return (self.trouble, self.act) == (trouble, act) and self.target in ("", target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """The API server, and Rancher with it, goes away for so long once the act has begun."""

    lasts: timedelta
    act: str = "cluster-upgrade"
    target: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """All that shall go wrong; by default nothing."""

    cues: tuple[Cue, ...] = ()
    absences: tuple[Absence, ...] = ()

    def fails(self, act: str, target: str = "", tried: int = 0) -> bool:
        """Whether the act fails once more, after so many tries."""
        return any(cue.times is None or tried < cue.times for cue in self._cues(Trouble.FAIL, act, target))

    def lasts(self, act: str, usual: timedelta, target: str = "") -> timedelta | None:
        """How long the act takes; None if it never ends."""
        if any(self._cues(Trouble.STALL, act, target)):
            return None
        slow = [cue.lasts for cue in self._cues(Trouble.SLOW, act, target) if cue.lasts is not None]
        return max(slow, default=usual)

    def repeats(self, act: str, target: str = "") -> int:
        """How often the act is done again."""
        return sum(cue.times or 1 for cue in self._cues(Trouble.REPEAT, act, target))

    def absence(self, act: str, target: str = "") -> timedelta | None:
        found = [each.lasts for each in self.absences if each.act == act and each.target in ("", target)]
        return max(found, default=None)

    def _cues(self, trouble: Trouble, act: str, target: str) -> tuple[Cue, ...]:
        return tuple(cue for cue in self.cues if cue.is_for(trouble, act, target))
