"""Reads what a user says shall go wrong: `pre-drain on charlie-2`, `image-import x2`, `post-drain on alfa-1=3h`.

All that cannot be understood is said at once, with what was probably meant. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeVar

from reconcile.simulator.actors.fault_plan import Absence, FaultMode, FaultPlan, InjectedFault
from reconcile.simulator.actors.operations import OperationTarget, SimulatedOperation, with_jobs
from renderer.errors import Problem, Problems, problem
from renderer.suggest import did_you_mean

Read = TypeVar("Read")

_FAULT = re.compile(r"(?P<act>[a-z][a-z0-9-]*)(?: on (?P<target>\S+?))?(?: x(?P<times>[1-9]\d*))?(?:=(?P<lasts>\S+))?")
_ABSENCE = re.compile(r"(?P<lasts>\S+)(?: at (?P<act>[a-z][a-z0-9-]*)(?: on (?P<target>\S+))?)?")
_DURATION = re.compile(r"(?:(?P<hours>\d+)h)?(?:(?P<minutes>\d+)m)?(?:(?P<seconds>\d+)s)?")
_FORMS = {
    FaultMode.FAIL: "ACT [on NAME] [xTIMES]",
    FaultMode.REPEAT: "ACT [on NAME] [xTIMES]",
    FaultMode.STALL: "ACT [on NAME]",
    FaultMode.SLOW: "ACT [on NAME]=DURATION",
}
_EXAMPLES = {
    FaultMode.FAIL: "pre-drain on node-2",
    FaultMode.REPEAT: "pre-drain-request on node-2",
    FaultMode.STALL: "reboot on node-2",
    FaultMode.SLOW: "post-drain on node-2=3h",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTargets:
    """Who is there: full names of nodes, names of virtual machines, and components of Jobs of one's own phases."""

    nodes: Sequence[str] = ()
    machines: Sequence[str] = ()
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOptions:
    """What was said, by option."""

    fail: Sequence[str] = ()
    stall: Sequence[str] = ()
    slow: Sequence[str] = ()
    repeat: Sequence[str] = ()
    away: Sequence[str] = ()


def fault_plan_of(options: FaultOptions, targets: KnownTargets) -> FaultPlan:
    """Raises `Problems` with everything that was not understood."""
    reader = _Reader(operations=with_jobs(targets.jobs), targets=targets)
    said = {
        FaultMode.FAIL: options.fail,
        FaultMode.STALL: options.stall,
        FaultMode.SLOW: options.slow,
        FaultMode.REPEAT: options.repeat,
    }
    problems: list[Problem] = []
    injected = tuple(_each((partial(reader.fault, mode, text) for mode in said for text in said[mode]), problems))
    absences = tuple(_each((partial(reader.absence, text) for text in options.away), problems))
    if problems:
        raise Problems(problems)
    return FaultPlan(injected=injected, absences=absences)


def _each(readings: Iterable[Callable[[], Read]], problems: list[Problem]) -> Iterator[Read]:
    """What can be read; the problems of the rest are added to those that there are."""
    for read in readings:
        try:
            yield read()
        except Problems as error:
            problems.extend(error.problems)


def duration_of(text: str) -> timedelta | None:
    """`90s`, `5m`, `1h30m`; None for anything else, and for no time at all."""
    match = _DURATION.fullmatch(text)
    parts = {unit: int(value) for unit, value in match.groupdict().items() if value} if match else {}
    return timedelta(**parts) or None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """Each reading raises `Problems` with the first thing that it does not understand."""

    operations: Mapping[str, SimulatedOperation]
    targets: KnownTargets

    def fault(self, mode: FaultMode, text: str) -> InjectedFault:
        option, match = f"--{mode}", _FAULT.fullmatch(text.strip())
        wanted = f"write `{option} '{_FORMS[mode]}'`, such as `{option} '{_EXAMPLES[mode]}'`"
        if match is None or (match["times"] and mode not in (FaultMode.FAIL, FaultMode.REPEAT)):
            raise _bad(option, f"{text!r} cannot be read", wanted)
        if bool(match["lasts"]) != (mode is FaultMode.SLOW):
            raise _bad(option, f"{text!r} {'has' if match['lasts'] else 'lacks'} a duration", wanted)
        operation = self._act(option, match["act"])
        if mode not in operation.troubles:
            fitting = ", ".join(f"--{each}" for each in FaultMode if each in operation.troubles)
            raise _bad(option, f"{operation.name} ({operation.what}) cannot {mode}", f"use one of {fitting}")
        return InjectedFault(
            mode=mode,
            operation=operation.name,
            target=self._target(option, operation, match["target"]),
            times=int(match["times"]) if match["times"] else None,
            lasts=self._duration(option, match["lasts"]) if match["lasts"] else None,
        )

    def absence(self, text: str) -> Absence:
        match = _ABSENCE.fullmatch(text.strip())
        if match is None:
            raise _bad("--away", f"{text!r} cannot be read", "write `--away 5m` or `--away '5m at pre-drain'`")
        lasts = self._duration("--away", match["lasts"])
        operation = self._act("--away", match["act"] or "cluster-upgrade")
        if not operation.is_job:
            raise _bad("--away", f"{operation.name} is no Job", "name the Job at whose start the outage begins")
        return Absence(lasts=lasts, operation=operation.name, target=self._target("--away", operation, match["target"]))

    def _act(self, option: str, name: str) -> SimulatedOperation:
        found = self.operations.get(name)
        if found is None:
            known = ", ".join(sorted(self.operations))
            raise _bad(option, f"there is no {name!r}{did_you_mean(name, self.operations)}", f"known are {known}")
        return found

    def _target(self, option: str, operation: SimulatedOperation, name: str | None) -> str:
        """The full name; empty for all. A beginning is enough where it fits one only."""
        if not name:
            return ""
        if operation.on is OperationTarget.NOTHING:
            raise _bad(option, f"{operation.name} takes no `on {name}`", "leave it out")
        known = self.targets.nodes if operation.on is OperationTarget.NODE else self.targets.machines
        fitting = [name] if name in known else [each for each in known if each.startswith(name)]
        if len(fitting) > 1:
            raise _bad(option, f"{name!r} fits {', '.join(fitting)}", "write more of the name")
        if not fitting:
            remedy = f"there are {', '.join(known)}" if known else f"the inputs have no {operation.on}"
            raise _bad(option, f"there is no {operation.on} {name!r}{did_you_mean(name, known)}", remedy)
        return fitting[0]

    def _duration(self, option: str, text: str) -> timedelta:
        found = duration_of(text)
        if found is None:
            raise _bad(option, f"{text!r} is no duration", "write 90s, 5m, 1h30m")
        return found


def _bad(option: str, message: str, remedy: str) -> Problems:
    return problem("BadCue", message, field=option, remedy=remedy)
