"""What a rehearsal has shown: the timeline, what was changed and given back, which virtual machines moved or stopped.

A model for people and machines alike (schemas/rehearse.json). Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from reconcile.decide.decision import Wait
from reconcile.simulator.actors.simulation_log import SimulationEventType, SimulationLog
from reconcile.simulator.rehearsal.driver import Ending
from reconcile.simulator.rehearsal.rehearsal import RehearsalResult
from reconcile.status.plan import PlanStatus, status_of
from reconcile.status.times import time_of
from renderer.model.path import path_name

Model = dict[str, Any]

_LONGEST = 60

_FATE: Mapping[SimulationEventType, str] = {
    SimulationEventType.VM_MOVED: "moved",
    SimulationEventType.VM_STOPPED: "stopped",
    SimulationEventType.VM_STARTED: "started again",
}
_NODE_FACTS = (
    SimulationEventType.CORDONED,
    SimulationEventType.DRAINED,
    SimulationEventType.KUBERNETES_UPGRADED,
    SimulationEventType.WENT_DOWN,
    SimulationEventType.CAME_BACK,
    SimulationEventType.UNCORDONED,
)


def report_of(rehearsed: RehearsalResult, name: str) -> Model:
    status = status_of(rehearsed.plan or {})
    return {
        "plan": name,
        "succeeded": rehearsed.succeeded,
        "ending": _ending(rehearsed, status),
        "took": _span(rehearsed.ended - rehearsed.started),
        "phases": _phases(status, rehearsed.started),
        "nodes": _nodes(rehearsed.log, rehearsed.started),
        "machines": _machines(rehearsed.log, rehearsed.started),
        "borrowed": [_loan(item.to_status()) for item in status.loans],
        "waits": [_wait(wait) for wait in _waits(rehearsed)],
        "storms": [str(fact) for fact in rehearsed.log.of(SimulationEventType.MIGRATION_STORM)],
    }


def report_lines(model: Model) -> Iterator[str]:
    yield f"{model['plan']}: {model['ending']} after {model['took']}"
    yield ""
    yield "PHASES"
    for phase in model["phases"]:
        yield f"  {phase['at']:>9}  {phase['phase']}"
    yield "NODES"
    for node in model["nodes"]:
        yield f"  {node['name']}: " + ", ".join(f"{fact['what']} at {fact['at']}" for fact in node["facts"])
    if model["machines"]:
        yield "VIRTUAL MACHINES"
        for machine in model["machines"]:
            yield f"  {machine['name']}: " + ", ".join(f"{fact['what']} at {fact['at']}" for fact in machine["facts"])
    if model["borrowed"]:
        yield "CHANGED ON OTHERS' OBJECTS"
        for loan in model["borrowed"]:
            fate = "given back" if loan["returned"] else "NOT given back"
            yield f"  {loan['object']} {loan['path']}: was {_short(loan['was'])}; {fate}"
    for storm in model["storms"]:
        yield f"WARNING  {storm}"
    if model["waits"]:
        yield "WAITS"
        for wait in model["waits"]:
            yield f"  {wait['step']}: {wait['text']}"


def _short(value: Any) -> str:
    """A value on a line; of a long list or text, how long it is."""
    text = str(value)
    return (
        text
        if len(text) <= _LONGEST
        else f"a list of {len(value)}"
        if isinstance(value, list)
        else f"{text[:_LONGEST]}…"
    )


def _ending(rehearsed: RehearsalResult, status: PlanStatus) -> str:
    if rehearsed.refused:
        return f"would not begin ({rehearsed.refused}); played all the same, it is in {status.phase}"
    if rehearsed.succeeded:
        return "would succeed"
    if rehearsed.plan is None:
        return "the plan is gone"
    if status.phase == "Failed":
        return f"would fail: {(status.condition('Progressing') or {}).get('message', '')}"
    return {
        Ending.STANDSTILL: f"would stand still in {status.phase}",
        Ending.OUT_OF_TIME: f"would not end; it is in {status.phase}",
        Ending.OVER: f"ends in {status.phase}",
    }[rehearsed.ending]


def _phases(status: PlanStatus, start: datetime) -> list[Model]:
    entries: Sequence[Mapping[str, str]] = status.rest.get("phaseTransitionTimestamps") or ()
    return [
        {"phase": entry["phase"], "at": _span(time_of(entry["phaseTransitionTimestamp"]) - start)} for entry in entries
    ]


def _nodes(log: SimulationLog, start: datetime) -> list[Model]:
    facts: dict[str, list[Model]] = {}
    for fact in log.of(*_NODE_FACTS):
        facts.setdefault(fact.node or fact.subject, []).append(_fact(_words(fact.what), fact.time, start))
    return [{"name": name, "facts": facts[name]} for name in sorted(facts)]


def _machines(log: SimulationLog, start: datetime) -> list[Model]:
    facts: dict[str, list[Model]] = {}
    for fact in log.of(*_FATE):
        facts.setdefault(fact.subject, []).append(_fact(_FATE[fact.what], fact.time, start))
    return [{"name": name, "facts": facts[name]} for name in sorted(facts)]


def _fact(what: str, time: datetime, start: datetime) -> Model:
    return {"what": what, "at": _span(time - start)}


def _words(what: SimulationEventType) -> str:
    """`WentDown` as `went down`."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in what).strip()


def _loan(item: Mapping[str, Any]) -> Model:
    where = f"{item['namespace']}/{item['name']}" if item.get("namespace") else item["name"]
    steps = tuple(step.replace("~1", "/").replace("~0", "~") for step in item["path"].split("/")[1:])
    return {
        "object": f"{item['kind']} {where}",
        "path": path_name(steps),
        "was": "absent" if item["absent"] else item.get("value"),
        "returned": bool(item.get("returned")),
    }


def _waits(rehearsed: RehearsalResult) -> Sequence[Wait]:
    last = rehearsed.last
    return () if rehearsed.succeeded or last is None or last.decision is None else last.decision.waits


def _wait(wait: Wait) -> Model:
    return {"step": wait.step, "node": wait.node or "", "text": wait.text}


def _span(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}d {clock}" if days else clock
