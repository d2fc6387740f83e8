"""Parses the fault options of `rehearse`: `pre-drain on charlie-2`, `image-import x2`, `post-drain on alfa-1=3h`.

Everything that is not understood is reported at once, with what was probably meant. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TypeVar

from reconcile.simulator.actors.actor_client import JOB, NODE_PLAN
from reconcile.simulator.actors.actor_context import name_of
from reconcile.simulator.actors.faults import (
    ApiOutage,
    FaultMode,
    FaultPlan,
    InjectedFault,
    OperationTarget,
    SimulatedOperation,
    with_jobs,
)
from reconcile.simulator.actors.job_effects import operation_of
from reconcile.status.times import duration_of
from renderer.errors import Problem, Problems, problem, quoted
from renderer.model.ref import Body
from renderer.suggest import did_you_mean

Parsed = TypeVar("Parsed")

_FAULT = re.compile(
    r"(?P<operation>[a-z][a-z0-9-]*)(?: on (?P<target>\S+?))?(?: x(?P<times>[1-9]\d{0,5}))?(?:=(?P<lasts>\S+))?"
)
_OUTAGE = re.compile(r"(?P<lasts>\S+)(?: at (?P<operation>[a-z][a-z0-9-]*)(?: on (?P<target>\S+))?)?")
_FORMS = {
    FaultMode.FAIL: "OPERATION [on NAME] [xTIMES]",
    FaultMode.REPEAT: "OPERATION [on NAME] [xTIMES]",
    FaultMode.STALL: "OPERATION [on NAME]",
    FaultMode.SLOW: "OPERATION [on NAME]=DURATION",
}
_EXAMPLES = {
    FaultMode.FAIL: "pre-drain on node-2",
    FaultMode.REPEAT: "pre-drain-request on node-2",
    FaultMode.STALL: "reboot on node-2",
    FaultMode.SLOW: "post-drain on node-2=3h",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownTargets:
    """The names that faults can use: nodes, virtual machines (`namespace/name`), and components of Jobs of the plan's
    own phases."""

    nodes: Sequence[str] = ()
    machines: Sequence[str] = ()
    jobs: tuple[str, ...] = ()


def known_targets(objects: Iterable[Body], manifests: Iterable[Body] = ()) -> KnownTargets:
    """Of a cluster's objects, and of what the plan renders."""
    bodies = tuple(objects)
    nodes = sorted(str(body["metadata"]["name"]) for body in bodies if body["kind"] == "Node")
    machines = sorted(name_of(body) for body in bodies if body["kind"] == "VirtualMachine")
    jobs = {operation_of(body): None for body in manifests if (body["apiVersion"], body["kind"]) in (JOB, NODE_PLAN)}
    return KnownTargets(nodes=nodes, machines=machines, jobs=tuple(jobs))


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultOptions:
    """The values of the options, as given."""

    fail: Sequence[str] = ()
    stall: Sequence[str] = ()
    slow: Sequence[str] = ()
    repeat: Sequence[str] = ()
    away: Sequence[str] = ()


def fault_plan_of(options: FaultOptions, targets: KnownTargets) -> FaultPlan:
    """Raises `Problems` with everything that was not understood."""
    parser = _Parser(operations=with_jobs(targets.jobs), targets=targets)
    given = {
        FaultMode.FAIL: options.fail,
        FaultMode.STALL: options.stall,
        FaultMode.SLOW: options.slow,
        FaultMode.REPEAT: options.repeat,
    }
    problems: list[Problem] = []
    faults = tuple(_each((partial(parser.fault, mode, text) for mode in given for text in given[mode]), problems))
    outages = tuple(_each((partial(parser.outage, text) for text in options.away), problems))
    if problems:
        raise Problems(problems)
    return FaultPlan(faults=faults, outages=outages)


def _each(parsers: Iterable[Callable[[], Parsed]], problems: list[Problem]) -> Iterator[Parsed]:
    """The faults that can be parsed; the problems of the rest are appended to `problems`."""
    for parse in parsers:
        try:
            yield parse()
        except Problems as error:
            problems.extend(error.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parser:
    """Each method raises `Problems` with the first thing that it does not understand."""

    operations: Mapping[str, SimulatedOperation]
    targets: KnownTargets

    def fault(self, mode: FaultMode, text: str) -> InjectedFault:
        option, match = f"--{mode}", _FAULT.fullmatch(text.strip())
        form = f"write `{option} '{_FORMS[mode]}'`, such as `{option} '{_EXAMPLES[mode]}'`"
        if match is None or (match["times"] and mode not in (FaultMode.FAIL, FaultMode.REPEAT)):
            raise _bad(option, f"{text!r} is invalid", form)
        if bool(match["lasts"]) != (mode is FaultMode.SLOW):
            raise _bad(option, f"{text!r} {'has' if match['lasts'] else 'lacks'} a duration", form)
        operation = self._operation(option, match["operation"])
        if mode not in operation.modes:
            possible = ", ".join(f"--{each}" for each in FaultMode if each in operation.modes)
            raise _bad(
                option,
                f"{operation.name} ({operation.what}) does not support --{mode}",
                f"use one of {possible} for it; --{mode} supports {self._supporting(mode)}",
            )
        return InjectedFault(
            mode=mode,
            operation=operation.name,
            target=self._target(option, operation, match["target"]),
            times=int(match["times"]) if match["times"] else None,
            lasts=self._duration(option, match["lasts"]) if match["lasts"] else None,
        )

    def outage(self, text: str) -> ApiOutage:
        match = _OUTAGE.fullmatch(text.strip())
        if match is None:
            raise _bad("--away", f"{text!r} is invalid", "write `--away 5m` or `--away '5m at pre-drain'`")
        lasts = self._duration("--away", match["lasts"])
        operation = self._operation("--away", match["operation"] or "cluster-upgrade")
        if not operation.is_job:
            jobs = ", ".join(sorted(name for name, each in self.operations.items() if each.is_job))
            raise _bad("--away", f"{operation.name} is not a Job", f"name the Job at whose start it begins: {jobs}")
        target = self._target("--away", operation, match["target"])
        return ApiOutage(lasts=lasts, operation=operation.name, target=target)

    def _supporting(self, mode: FaultMode) -> str:
        return ", ".join(sorted(name for name, each in self.operations.items() if mode in each.modes))

    def _operation(self, option: str, name: str) -> SimulatedOperation:
        found = self.operations.get(name)
        if found is None:
            known = ", ".join(sorted(self.operations))
            message = f"unknown operation {name!r}{did_you_mean(name, self.operations)}"
            raise _bad(option, message, f"use one of {known}")
        return found

    def _target(self, option: str, operation: SimulatedOperation, name: str | None) -> str:
        """The full name; empty for all. The beginning of a name is enough where it is unique, and a virtual machine's
        needs no namespace."""
        if not name:
            return ""
        if operation.on is OperationTarget.NOTHING:
            raise _bad(option, f"{operation.name} takes no `on {name}`", f"leave out `on {name}`")
        known = self.targets.nodes if operation.on is OperationTarget.NODE else self.targets.machines
        exact = [each for each in known if name in (each, each.rpartition("/")[2])]
        found = exact or [each for each in known if name in (each[: len(name)], each.rpartition("/")[2][: len(name)])]
        if len(found) > 1:
            raise _bad(option, f"{name!r} is ambiguous: {', '.join(found)}", "write more of the name")
        if not found:
            remedy = f"use one of {', '.join(known)}" if known else f"the inputs have no {operation.on}"
            raise _bad(option, f"{operation.on} {name!r} not found{did_you_mean(name, known)}", remedy)
        return found[0]

    def _duration(self, option: str, text: str) -> timedelta:
        found = duration_of(text)
        if not found:
            raise _bad(option, f"{quoted(text)} is not a duration", "write it like 90s, 5m or 1h30m, a year at most")
        return found


def _bad(option: str, message: str, remedy: str) -> Problems:
    return problem("InvalidFault", message, field=option, remedy=remedy)
