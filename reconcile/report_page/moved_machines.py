"""The virtual machines of a run: which moved, which were stopped and started again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from reconcile.report_page.recorded_run import MachineFact, RecordedRun
from reconcile.report_page.timeline import RunTimes

Model = dict[str, Any]


def machines_of(run: RecordedRun, times: RunTimes) -> list[Model]:
    """By name, each with what happened to it, in order."""
    facts: dict[str, list[Model]] = {}
    told = run.machine_facts if run.machine_facts is not None else (*_moves(run), *_stops(run))
    for fact in sorted(told, key=lambda fact: fact.time):
        facts.setdefault(fact.machine, []).append({"what": fact.what, "at": times.at(fact.time), "node": fact.node})
    return [{"name": name, "facts": facts[name]} for name in sorted(facts)]


def _moves(run: RecordedRun) -> Iterator[MachineFact]:
    """A machine that was seen on another node than before. When it moved is not known to the minute: between two
    looks."""
    last: dict[str, str] = {}
    for moment in run.moments:
        for machine, node in moment.sighting.machines.items():
            if last.get(machine, node) != node:
                yield MachineFact(time=moment.time, machine=machine, what="moved", node=node)
            last[machine] = node


def _stops(run: RecordedRun) -> Iterator[MachineFact]:
    """The plan's list of machines that are to be started again: one is put on it before it is stopped, and taken off it
    when it runs."""
    listed: dict[str, str] = {}
    for moment in run.moments:
        if moment.sighting.stopped is None:
            continue
        now = {machine: node for node, machines in moment.sighting.stopped.items() for machine in machines}
        for machine, node in now.items():
            if machine not in listed:
                yield MachineFact(time=moment.time, machine=machine, what="stopped", node=node)
        for machine in listed.keys() - now.keys():
            yield MachineFact(time=moment.time, machine=machine, what="started again")
        listed = now
