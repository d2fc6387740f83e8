"""The report of a rehearsal: timeline, borrowed fields, virtual machines, add-ons, and what could not be checked.

One model for people and machines (schemas/rehearse.json). Pure.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from reconcile.decide.decision import Wait
from reconcile.report_page.recorded_run import MachineFact
from reconcile.simulator.actors.simulation_log import SimulationEventType, SimulationLog
from reconcile.simulator.apiserver.cel_rules import UncheckedRule
from reconcile.simulator.rehearsal.driver import Ending
from reconcile.simulator.rehearsal.rehearsal import RehearsalResult
from reconcile.status.plan import PlanStatus
from reconcile.status.plan_body import status_of
from reconcile.status.times import clock_text, time_of
from renderer.model.path import path_name

Model = dict[str, Any]

_LONGEST = 60
_FAILED = "would fail"
_UNFINISHED = "would not finish"

_MACHINE_EVENTS: Mapping[SimulationEventType, str] = {
    SimulationEventType.VM_MOVED: "moved",
    SimulationEventType.VM_STOPPED: "stopped",
    SimulationEventType.VM_STARTED: "started again",
}
_ADDON_EVENTS: Mapping[SimulationEventType, str] = {
    SimulationEventType.ADDON_ENABLED: "enabled",
    SimulationEventType.ADDON_DISABLED: "disabled",
}
_NODE_FACTS = (
    SimulationEventType.CORDONED,
    SimulationEventType.DRAINED,
    SimulationEventType.KUBERNETES_UPGRADED,
    SimulationEventType.WENT_DOWN,
    SimulationEventType.CAME_BACK,
    SimulationEventType.UNCORDONED,
    SimulationEventType.CORDONED_AGAIN,
)


def report_of(rehearsed: RehearsalResult, name: str) -> Model:
    status = status_of(rehearsed.plan or {})
    return {
        "plan": name,
        "from": str(status.rest.get("previousVersion") or ""),
        "to": str((status.rest.get("releaseMetadata") or {}).get("harvester") or ""),
        "succeeded": rehearsed.succeeded,
        "ending": _ending(rehearsed, status),
        "took": _span(rehearsed.ended - rehearsed.started),
        "phases": _phases(status, rehearsed.started),
        "nodes": _nodes(rehearsed.log, rehearsed.started),
        "machines": _subjects(rehearsed, _MACHINE_EVENTS),
        "addons": _subjects(rehearsed, _ADDON_EVENTS),
        "borrowed": [_loan(item.to_status()) for item in status.loans],
        "waits": [_wait(wait) for wait in _waits(rehearsed)],
        "storms": [str(fact) for fact in rehearsed.log.of(SimulationEventType.MIGRATION_STORM)],
        "notInjected": [{"option": fault.option, "value": fault.value} for fault in rehearsed.not_injected],
        "notChecked": [_unchecked(rule) for rule in rehearsed.unchecked],
    }


def machine_facts(rehearsed: RehearsalResult) -> tuple[MachineFact, ...]:
    """The moves, stops and starts of virtual machines, for the report of the run."""
    return tuple(
        MachineFact(time=fact.time, machine=fact.subject, what=_MACHINE_EVENTS[fact.what], node=fact.to or fact.node)
        for fact in rehearsed.log.of(*_MACHINE_EVENTS)
    )


def report_lines(model: Model) -> Iterator[str]:
    yield f"{model['plan']}: {ending_line(model)}"
    yield ""
    yield "PHASES"
    for phase in model["phases"]:
        yield f"  {phase['at']:>9}  {phase['phase']}"
    for heading, key in (("NODES", "nodes"), ("VIRTUAL MACHINES", "machines"), ("ADD-ONS", "addons")):
        if model[key]:
            yield heading
        for item in model[key]:
            yield f"  {item['name']}: " + ", ".join(f"{fact['what']} at {fact['at']}" for fact in item["facts"])
    if model["borrowed"]:
        yield "BORROWED FIELDS"
        for loan in model["borrowed"]:
            yield f"  {loan['object']} {loan['path']}: was {short_value(loan['was'])}; {fate_of(loan)}"
    for storm in model["storms"]:
        yield f"WARNING  {storm}"
    if model["waits"]:
        yield "WAITS"
        for wait in model["waits"]:
            yield f"  {wait['step']}: {wait['summary'] or wait['text']}"
    if model["notInjected"]:
        yield "NOT INJECTED"
        for fault in model["notInjected"]:
            yield f"  {fault['option']} '{fault['value']}': the upgrade ended before this took place"
    if model["notChecked"]:
        yield "NOT CHECKED"
        for rule in model["notChecked"]:
            where = f"{rule['kind']} {rule['path']}".rstrip()
            yield f"  {where}: CEL rule {rule['rule']!r} was not evaluated ({rule['reason']})"


def ending_line(model: Model) -> str:
    """The ending and the time that it took; that comes before the cause of a failure, which may be long."""
    ending, took = str(model["ending"]), model["took"]
    if ending.startswith(_FAILED):
        return f"{_FAILED} after {took}{ending.removeprefix(_FAILED)}"
    if ending.startswith(_UNFINISHED):
        return f"{_UNFINISHED} (stopped after {took}){ending.removeprefix(_UNFINISHED)}"
    return f"{ending} after {took}"


def fate_of(loan: Model) -> str:
    return "returned" if loan["returned"] else "NOT returned"


def short_value(value: Any) -> str:
    """A value on a line; of a long list or text, how long it is."""
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, (list, dict)) else str(value)
    return (
        text
        if len(text) <= _LONGEST
        else f"a list of {len(value)}"
        if isinstance(value, list)
        else f"{text[:_LONGEST]}…"
    )


def _ending(rehearsed: RehearsalResult, status: PlanStatus) -> str:
    if rehearsed.refused:
        end = f"{status.phase}: {_why_failed(status)}" if status.phase == "Failed" else status.phase
        return f"would not start ({rehearsed.refused}); simulated anyway, it ends in {end}"
    if rehearsed.succeeded:
        return "would succeed"
    if rehearsed.plan is None:
        return "the plan was deleted"
    if status.phase == "Failed":
        return f"{_FAILED}: {_why_failed(status)}"
    return {
        Ending.STANDSTILL: f"{_UNFINISHED}: no progress {_place(status)}{_problems(rehearsed)}",
        Ending.OUT_OF_TIME: f"{_UNFINISHED}: still {_place(status)}{_problems(rehearsed)}",
        Ending.OVER: f"ends in {status.phase}",
    }[rehearsed.ending]


def _place(status: PlanStatus) -> str:
    return f"in {status.phase}" if status.phase else "before the first phase"


def _problems(rehearsed: RehearsalResult) -> str:
    """Returns the last refusals of a template or the API server, after a colon; empty if there are none."""
    found = "; ".join(dict.fromkeys(rehearsed.last.problems if rehearsed.last else ()))
    return f": {found}" if found else ""


def _why_failed(status: PlanStatus) -> str:
    return str((status.condition("Progressing") or {}).get("message", ""))


def _phases(status: PlanStatus, start: datetime) -> list[Model]:
    entries: Sequence[Mapping[str, str]] = status.rest.get("phaseTransitionTimestamps") or ()
    return [
        {"phase": entry["phase"], "at": _span(time_of(entry["phaseTransitionTimestamp"]) - start)} for entry in entries
    ]


def _nodes(log: SimulationLog, start: datetime) -> list[Model]:
    facts: dict[str, list[Model]] = {}
    for fact in log.of(*_NODE_FACTS):
        facts.setdefault(fact.node or fact.subject, []).append(_fact(_event_text(fact.what), fact.time, start))
    return [{"name": name, "facts": facts[name]} for name in sorted(facts)]


def _subjects(rehearsed: RehearsalResult, words: Mapping[SimulationEventType, str]) -> list[Model]:
    """The events of each subject of these events, by name."""
    facts: dict[str, list[Model]] = {}
    for fact in rehearsed.log.of(*words):
        facts.setdefault(fact.subject, []).append(_fact(words[fact.what], fact.time, rehearsed.started))
    return [{"name": name, "facts": facts[name]} for name in sorted(facts)]


def _unchecked(rule: UncheckedRule) -> Model:
    return {"kind": rule.kind, "path": rule.path, "rule": rule.rule, "reason": rule.because}


def _fact(what: str, time: datetime, start: datetime) -> Model:
    return {"what": what, "at": _span(time - start)}


def _event_text(what: SimulationEventType) -> str:
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
    return {"step": wait.step, "node": wait.node or "", "text": wait.text, "summary": wait.summary}


def _span(span: timedelta) -> str:
    return clock_text(int(span.total_seconds()))
