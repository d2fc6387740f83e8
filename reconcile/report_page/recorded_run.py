"""A run as it was recorded: what was known about it, moment by moment, and how it stands in the end.

A journal and a rehearsal have many moments; a plan alone has one, which is now.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from reconcile.decide.decision import Wait
from reconcile.loop.decision_body import plain
from reconcile.loop.journal import JournalEntry
from reconcile.objects import items
from reconcile.probes.look import ReadFailure
from reconcile.status.plan_body import status_body
from reconcile.toolkit.restore_list import list_refs, names_in
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of

Words = Mapping[str, Any]


class RunSource(StrEnum):
    """The kinds of records that a run is known from."""

    PLAN = "plan"
    JOURNAL = "journal"
    REHEARSAL = "rehearsal"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeVersions:
    """The versions that a node has reported."""

    os: str
    kubernetes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """Facts of the objects that were read: versions by node, the node of each virtual machine, and by node the virtual
    machines on the plan's list of those to be started again; None where there was no such list."""

    nodes: Mapping[str, NodeVersions] = field(default_factory=dict)
    machines: Mapping[str, str] = field(default_factory=dict)
    stopped: Mapping[str, Sequence[str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventSeen:
    """An event that was emitted about the plan."""

    time: datetime
    type: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMoment:
    """`status` is as the API has it; `waits` are decisions' waits as plain data."""

    time: datetime
    status: Body
    waits: tuple[Words, ...] = ()
    events: tuple[EventSeen, ...] = ()
    sighting: Sighting = field(default_factory=Sighting)


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFact:
    """Something that happened to a virtual machine, `namespace/name`, on a node if that is known."""

    time: datetime
    machine: str
    what: str
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogExcerpt:
    """The last lines that a container of a failed step has printed."""

    object: str
    container: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """`name` names the plan, `origin` the file or the cluster that it is known from. `moments` are in order, at least
    one. `machine_facts` is None where they have to be worked out from the moments. `causes` are those of its waits now,
    as `explain` words them; `excerpts` are by step, `Phase/Step` or `Phase/Step/node`."""

    name: str
    source: RunSource
    origin: str
    plan: Body
    moments: tuple[RunMoment, ...]
    machine_facts: tuple[MachineFact, ...] | None = None
    causes: tuple[Words, ...] = ()
    excerpts: Mapping[str, tuple[LogExcerpt, ...]] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    @property
    def last(self) -> RunMoment:
        return self.moments[-1]


def moment_of(entry: JournalEntry) -> RunMoment:
    """A round of the loop, as a journal is given it."""
    seen, decision = entry.seen, entry.decision
    now, bodies = seen.observation.now, list(_bodies(entry))
    return RunMoment(
        time=now,
        status=status_body(decision.status),
        waits=waits_of(decision.waits),
        events=tuple(
            EventSeen(time=now, type=event.type, reason=event.reason, message=event.message)
            for event in decision.events
        ),
        sighting=sighting_of(str(seen.observation.plan["metadata"]["name"]), [*bodies, *seen.objects]),
    )


def waits_of(waits: Iterable[Wait]) -> tuple[Words, ...]:
    """The waits of a decision as plain data."""
    return tuple(plain(wait) for wait in waits)


def _bodies(entry: JournalEntry) -> Iterator[Body]:
    snapshot = entry.seen.snapshot
    yield from (body for body in snapshot.objects.values() if isinstance(body, Mapping))
    for found in snapshot.groups.values():
        if not isinstance(found, ReadFailure):
            yield from found


def sighting_of(plan: str, bodies: Iterable[Body]) -> Sighting:
    """Reads these objects. Of an object that is there twice, the first is believed."""
    lists = set(list_refs(plan))
    nodes: dict[str, NodeVersions] = {}
    machines: dict[str, str] = {}
    stopped: dict[str, Sequence[str]] | None = None
    for body in bodies:
        ref = ref_of(body)
        if ref.kind == "Node":
            nodes.setdefault(ref.name, _versions(body))
        elif ref.kind == "VirtualMachineInstance":
            if on := _text(body, "status", "nodeName"):
                machines.setdefault(f"{ref.namespace}/{ref.name}", on)
        elif ref in lists:
            stopped = {**_stopped(body), **(stopped or {})}
    return Sighting(nodes=nodes, machines=machines, stopped=stopped)


def is_sighted(ref: Ref, plan: str) -> bool:
    """True for an object that a sighting is made of."""
    return ref.kind in ("Node", "VirtualMachineInstance") or ref in list_refs(plan)


def _versions(node: Body) -> NodeVersions:
    return NodeVersions(
        os=_text(node, "status", "nodeInfo", "osImage"), kubernetes=_text(node, "status", "nodeInfo", "kubeletVersion")
    )


def _stopped(config_map: Body) -> dict[str, Sequence[str]]:
    return {str(node): names_in(config_map, str(node)) for node in items([*(config_map.get("data") or {})])}


def _text(body: Body, *path: str) -> str:
    return str(look_up(body, path) or "")
