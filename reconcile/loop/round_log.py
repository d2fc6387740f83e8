"""Logs what rounds of plans do: each write, each phase, and each wait when it is new."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from reconcile.decide.decision import Action, Annotate, Apply, Borrow, Remove, RemoveTrace, Return, SetFinalizer, Wait
from reconcile.loop.executor import ExecutedAction
from reconcile.loop.logs import Log, LogLevel
from reconcile.loop.round import Round
from renderer.model.plan_api import plan_ref

MESSAGES: Mapping[type[Action], str] = {
    Apply: "applied",
    Borrow: "borrowed",
    Return: "returned",
    Remove: "removed",
    RemoveTrace: "field removed",
    SetFinalizer: "finalizer",
    Annotate: "annotated",
}
"""The message about an action that was carried out."""

_Told = tuple[str, str, str]
"""A wait as it was logged: step without its node, the words, and the level's name."""


class RoundLog:
    """Remembers of each plan what was logged last."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._waits: dict[str, frozenset[_Told]] = {}
        self._phases: dict[str, str] = {}

    def __call__(self, done: Round) -> None:
        decision = done.decision
        if done.plan is None:
            self._waits.pop(done.name, None)
            self._phases.pop(done.name, None)
        if decision is None:
            if done.problems:
                self._log("not decided", {"plan": done.name, "problems": list(done.problems)})
            return
        phase = decision.status.phase
        if self._phases.get(done.name) != phase:
            self._phases[done.name] = phase
            self._log("phase", {"plan": done.name, "phase": phase})
        for result in done.results:
            self._log(MESSAGES[type(result.action)], {"plan": done.name, **_of_result(result, done.name, phase)})
        self._tell_waits(done.name, phase, decision.waits)
        counts = {"did": len(done.results), "problems": len(done.problems), "waits": len(decision.waits)}
        self._log("round", {"plan": done.name, "phase": phase, **counts})

    def _tell_waits(self, plan: str, phase: str, waits: tuple[Wait, ...]) -> None:
        """Those that are new. What many nodes wait for is one line, with their number."""
        grouped: dict[_Told, list[Wait]] = {}
        for wait in waits:
            grouped.setdefault((_step_of(wait), wait.words, _level_of(wait).name), []).append(wait)
        before, self._waits[plan] = self._waits.get(plan, frozenset()), frozenset(grouped)
        for told, found in grouped.items():
            if told not in before:
                self._log("waiting", {"plan": plan, "phase": phase, **_of_wait(told, found)})


def _of_wait(told: _Told, found: list[Wait]) -> dict[str, Any]:
    step, words, level = told
    nodes = [wait.node for wait in found if wait.node]
    objects = Counter(str(ref) for wait in found for ref in wait.refs)
    return {
        **_without_empty({"step": step, "node": nodes[0] if len(nodes) == 1 else ""}),
        **({"nodes": len(nodes)} if len(nodes) > 1 else {}),
        **({"object": next(iter(objects))} if len(objects) == 1 else {}),
        "why": words,
        "level": LogLevel[level],
    }


def _of_result(result: ExecutedAction, plan: str, phase: str) -> dict[str, Any]:
    action, failed = result.action, result.problem is not None
    level = LogLevel.INFO if not failed else LogLevel.WARNING if result.stale else LogLevel.ERROR
    fields = {"phase": phase, **_place(action), "object": _object(action, plan)}
    return {**_without_empty(fields), **({"why": result.problem} if failed else {}), "level": level}


def _place(action: Action) -> dict[str, str]:
    match action:
        case Apply(step=(_, step, node)) | Borrow(step=(_, step, node)):
            return {"step": step, "node": node or ""}
        case Return(settled=(loan, *_)):
            step, _, node = loan.step.partition("/")
            return {"step": step, "node": node}
    return {}


def _object(action: Action, plan: str) -> str:
    match action:
        case Apply() | Borrow():
            return str(action.manifest.ref)
        case Return() | Remove() | RemoveTrace():
            return str(action.ref)
    return str(plan_ref(plan))


def _level_of(wait: Wait) -> LogLevel:
    return LogLevel.WARNING if wait.slow or wait.unknown or wait.check else LogLevel.INFO


def _step_of(wait: Wait) -> str:
    """The step's own name: `PreDrain` of `NodeUpgrade/PreDrain/n1`."""
    return wait.step_of_phase.partition("/")[2]


def _without_empty(fields: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in fields.items() if value}
