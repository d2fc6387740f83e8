"""Reads what the steps have done from the status of an UpgradePlan, and writes it again.

Of the steps of a thousand nodes a round changes those of one or two; the others are neither read nor written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from reconcile.status.plan import Place, PlanStatus, ReadSteps
from reconcile.status.record import StepRecord, record_body, record_from
from renderer.model.sharing import changed

_T = TypeVar("_T")
_NONE: Mapping[str, Any] = {}


def read_steps(body: Mapping[str, Any], before: ReadSteps) -> ReadSteps:
    """Reads the steps; what is the same in the body of `before` is taken from there."""
    if body is before.body:
        return before
    records, attempts, done = dict(before.records), dict(before.attempts), dict(before.done)
    for phase in changed(body, before.body):
        now, then = body.get(phase, _NONE), before.body.get(phase, _NONE)
        _read(records, phase, now.get("records", _NONE), then.get("records", _NONE), record_from)
        _read(attempts, phase, now.get("attempts", _NONE), then.get("attempts", _NONE), _attempts_from)
        texts = now.get("done", _NONE)
        for node in changed(texts, then.get("done", _NONE)):
            _put(done, (phase, node), texts.get(node))
    skipped = {phase: each["skipped"] for phase, each in body.items() if "skipped" in each}
    return ReadSteps(
        body=body,
        records=_kept(records, before.records),
        attempts=_kept(attempts, before.attempts),
        done=_kept(done, before.done),
        skipped=skipped,
    )


def _kept(now: Mapping[Any, _T], before: Mapping[Any, _T]) -> Mapping[Any, _T]:
    """The very same as before if they are equal, so that it is compared at a glance."""
    return before if now == before else now


def _read(
    places: dict[Place, Mapping[str, _T]],
    phase: str,
    now: Mapping[str, Any],
    then: Mapping[str, Any],
    read: Callable[[Any], _T],
) -> None:
    """Reads what is kept by `step/node`, or `step` for the cluster, into the places."""
    for key in changed(now, then):
        step, _, node = key.partition("/")
        here = dict(places.get((phase, node or None), _NONE))
        _put(here, step, read(now[key]) if key in now else None)
        _put(places, (phase, node or None), here)


def _attempts_from(raw: Any) -> tuple[StepRecord, ...]:
    return tuple(map(record_from, raw))


def steps_body(status: PlanStatus) -> Mapping[str, Any]:
    """The steps as the API has them. What has not changed is the very part that was read."""
    read, steps = status.read, _Patched(status.read.body)
    _write(steps, "records", status.records, read.records, record_body)
    _write(steps, "attempts", status.attempts, read.attempts, _attempts_body)
    for phase, node in changed(status.done, read.done):
        _put(steps.part(phase, "done"), node, status.done.get((phase, node)))
    for phase in changed(status.skipped, read.skipped):
        _put(steps.phase(phase), "skipped", status.skipped.get(phase))
    return steps.result()


def _write(
    steps: _Patched,
    part: str,
    now: Mapping[Place, Mapping[str, _T]],
    then: Mapping[Place, Mapping[str, _T]],
    body_of: Callable[[_T], Any],
) -> None:
    for phase, node in changed(now, then):
        here, bodies = now.get((phase, node), _NONE), steps.part(phase, part)
        for step in changed(here, then.get((phase, node), _NONE)):
            _put(bodies, f"{step}/{node}" if node else step, body_of(here[step]) if step in here else None)


def _attempts_body(records: tuple[StepRecord, ...]) -> list[Mapping[str, Any]]:
    return [record_body(each) for each in records]


def _put(those: dict[Any, Any], key: Any, value: Any) -> None:
    """Sets a value; one that is None or empty is removed."""
    if value:
        those[key] = value
    else:
        those.pop(key, None)


class _Patched:
    """A body of steps of which only the parts that change are copied."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self._body = body
        self._phases: dict[str, dict[str, Any]] = {}
        self._parts: dict[tuple[str, str], dict[str, Any]] = {}

    def phase(self, name: str) -> dict[str, Any]:
        if name not in self._phases:
            self._phases[name] = dict(self._body.get(name, _NONE))
        return self._phases[name]

    def part(self, phase: str, name: str) -> dict[str, Any]:
        if (phase, name) not in self._parts:
            self._parts[phase, name] = dict(self.phase(phase).get(name, _NONE))
        return self._parts[phase, name]

    def result(self) -> Mapping[str, Any]:
        if not self._phases:
            return self._body
        for (phase, name), part in self._parts.items():
            _put(self._phases[phase], name, part)
        steps = dict(self._body)
        for phase, body in self._phases.items():
            _put(steps, phase, body)
        return steps
