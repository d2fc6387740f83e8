"""A run as recorded in its plan, with what the cluster still has of it: events, machines that moved, nodes.

Of the past a plan's record has the steps and the loans, and no waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime

from reconcile.observe.source import Source
from reconcile.probes.look import Group, ReadFailure
from reconcile.report_page.recorded_run import (
    EventSeen,
    LogExcerpt,
    MachineFact,
    RecordedRun,
    RunMoment,
    RunSource,
    Sighting,
    Words,
    sighting_of,
)
from reconcile.status.plan_body import status_of
from reconcile.status.times import time_of
from reconcile.toolkit.restore_list import list_refs
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref

_EVENTS = Group(api_version="v1", kind="Event", namespace="default")
_NODES = Group(api_version="v1", kind="Node")
_MIGRATIONS = Group(api_version="kubevirt.io/v1", kind="VirtualMachineInstanceMigration")

Excerpts = Callable[[Iterable[Ref]], tuple[LogExcerpt, ...]]


def run_of_plan(plan: Body, origin: str, now: datetime, waits: tuple[Words, ...] = ()) -> RecordedRun:
    """The run by its record alone, as of `now`."""
    name = str(plan["metadata"]["name"])
    moment = RunMoment(time=now, status=plan.get("status") or {}, waits=waits)
    return RecordedRun(name=name, source=RunSource.PLAN, origin=origin, plan=plan, moments=(moment,))


def with_cluster(run: RecordedRun, source: Source, causes: Iterable[Words], excerpts: Excerpts) -> RecordedRun:
    """The same with what the cluster says. What cannot be read is named, and left out."""
    unread: list[str] = []

    def items(group: Group) -> Iterable[Body]:
        found = source.list(group)
        if isinstance(found, ReadFailure):
            unread.append(f"{group.kind} objects: {found.why}")
            return ()
        return found

    events = sorted(_events(run.name, items(_EVENTS)), key=lambda event: event.time)
    seen = sighting_of(run.name, [*items(_NODES), *_lists(run.name, source)])
    facts = (*_moves(items(_MIGRATIONS), _began(run)), *_stopped(run, seen))
    moment = RunMoment(
        time=run.last.time, status=run.last.status, waits=run.last.waits, events=tuple(events), sighting=seen
    )
    return RecordedRun(
        name=run.name,
        source=run.source,
        origin=run.origin,
        plan=run.plan,
        moments=(moment,),
        machine_facts=facts,
        causes=tuple(causes),
        excerpts=_excerpts(run, excerpts),
        unread=tuple(unread),
    )


def with_excerpts(run: RecordedRun, excerpts: Excerpts) -> RecordedRun:
    """The same with these last lines of what failed, where there are some."""
    found = {step: lines for step, lines in _excerpts(run, excerpts).items() if lines}
    return replace(run, excerpts={**run.excerpts, **found})


def _began(run: RecordedRun) -> datetime:
    history = run.last.status.get("phaseTransitionTimestamps") or ()
    return time_of(history[0]["phaseTransitionTimestamp"]) if history else run.last.time


def _events(plan: str, bodies: Iterable[Body]) -> Iterator[EventSeen]:
    for body in bodies:
        about = body.get("involvedObject") or {}
        when = body.get("firstTimestamp") or body.get("eventTime")
        if about.get("kind") == "UpgradePlan" and about.get("name") == plan and when:
            yield EventSeen(
                time=time_of(str(when)),
                type=str(body.get("type") or ""),
                reason=str(body.get("reason") or ""),
                message=str(body.get("message") or ""),
            )


def _lists(plan: str, source: Source) -> Iterator[Body]:
    for ref in list_refs(plan):
        found = source.get(ref)
        if isinstance(found, Mapping):
            yield found


def _moves(migrations: Iterable[Body], began: datetime) -> Iterator[MachineFact]:
    """The migrations that succeeded since the plan began, whoever requested them."""
    for body in migrations:
        state = look_up(body, ("status", "migrationState")) or {}
        if state.get("completed") and not state.get("failed") and (end := state.get("endTimestamp")):
            machine = look_up(body, ("spec", "vmiName"))
            fact = MachineFact(
                time=time_of(str(end)),
                machine=f"{body['metadata'].get('namespace', '')}/{machine}",
                what="moved",
                node=str(state.get("targetNode") or ""),
            )
            if fact.time >= began:
                yield fact


def _stopped(run: RecordedRun, seen: Sighting) -> Iterator[MachineFact]:
    """Machines that are still on the plan's list: stopped for a node since its first step began, and not started."""
    status = status_of({"status": run.last.status})
    phases = {phase for phase, _ in (*status.records, *status.done)}
    for node, machines in (seen.stopped or {}).items():
        times = [time for phase in phases if (time := status.began(phase, node)) is not None]
        for machine in machines:
            yield MachineFact(time=min(times, default=run.last.time), machine=machine, what="stopped", node=node)


def _excerpts(run: RecordedRun, excerpts: Excerpts) -> dict[str, tuple[LogExcerpt, ...]]:
    """By `Phase/Step/node` of each step that has failed."""
    status = status_of({"status": run.last.status})
    return {
        "/".join(filter(None, (phase, step, node))): excerpts(made.ref for made in record.objects)
        for (phase, node), records in status.records.items()
        for step, record in records.items()
        if record.failed
    }
