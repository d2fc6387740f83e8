"""Journeys pin the loop: what was decided, round by round, as text that a reviewer can read.

A file of `tests/journeys` is one journey. Its head says which example is played, what goes wrong (`fail: ...`, as
`rehearse` takes it) and what the operator does on the way (`at ImagePreloading: delete`); below the rule stands what
came of it. A round that changed nothing since the last one is left out. `pytest --snapshot-update` writes them again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from support.invariants import violations
from support.recordings import recording
from support.rehearsals import START, permissions, rehearsal_of

from reconcile.loop.round import Round
from reconcile.simulator.rehearsal.rehearsal import Rehearsal
from renderer.model.ref import Ref

pytestmark = [pytest.mark.slow, pytest.mark.lane("recordings")]

FILES = sorted((Path(__file__).parent / "journeys").glob("*.txt"))
RULE = "-" * 40
PLAN = "management.harvesterhci.io/v1beta1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """`wishes` are what goes wrong, by option; `edits` what the operator does when the plan is first in a phase."""

    example: str
    wishes: Mapping[str, Any] = field(default_factory=dict)
    edits: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, text: str) -> Head:
        said = [line.partition(": ") for line in text.splitlines()]
        wishes: dict[str, list[str]] = {}
        for word, _, value in said:
            if word in ("fail", "stall", "slow", "repeat", "away"):
                wishes.setdefault(word, []).append(value)
        edits = tuple((word.removeprefix("at "), value) for word, _, value in said if word.startswith("at "))
        return cls(example=next(value for word, _, value in said if word == "play"), wishes=wishes, edits=edits)


class Scribe:
    """Writes a round down where it differs from the one before, and edits the plan where the head says so."""

    def __init__(self, head: Head, scene: Rehearsal) -> None:
        self.lines: list[str] = []
        self._scene = scene
        self._edits = list(head.edits)
        self._phase = ""
        self._nodes: Mapping[str, Mapping[str, Any]] = {}
        self._waits: tuple[str, ...] = ()

    def __call__(self, now: datetime, done: Round) -> None:
        told = list(self._told(done))
        if told:
            seconds = int((now - START).total_seconds())
            moment = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
            self.lines += [f"{moment} {self._phase or '(no phase)'}", *(f"    {line}" for line in told)]
        self._edit()

    def _told(self, done: Round) -> Iterator[str]:
        yield from (f"problem: {text}" for text in done.problems)
        if done.plan is None:
            yield "the plan is gone"
        if done.decision is None:
            return
        status, waits = done.decision.status, tuple(wait.text for wait in done.decision.waits)
        if status.phase != self._phase:
            yield f"enters {status.phase}"
        yield from (f"does {described(result.action)}" for result in done.results)
        for node, entry in sorted(status.node_states.items()):
            if entry != self._nodes.get(node):
                yield f"node {node} is {' '.join(map(str, entry.values()))}"
        yield from (f"tells {event.type} {event.reason}: {event.message}" for event in done.decision.events)
        yield from (f"waits: {text}" for text in waits if text not in self._waits)
        self._phase, self._nodes, self._waits = status.phase, status.node_states, waits

    def _edit(self) -> None:
        while self._edits and self._edits[0][0] == self._phase:
            _, edit = self._edits.pop(0)
            self.lines.append(f"operator: {edit}")
            assert edit == "delete"
            kind = self._scene.deps.kinds.row(PLAN, "UpgradePlan").kind
            plan = Ref(api_version=PLAN, kind="UpgradePlan", name=self._scene.name)
            self._scene.cluster.client().delete(kind, plan)


def end_of(scene: Rehearsal, plan: Mapping[str, Any] | None) -> Iterator[str]:
    yield "at the end"
    status = (plan or {}).get("status") or {}
    for condition in status.get("conditions") or ():
        text = f"{condition['type']}={condition['status']} {condition['reason']} {condition['message']}"
        yield f"    {text.rstrip()}"
    for loan in status.get("borrowed") or ():
        fate = "given back" if loan.get("returned") else "not given back"
        yield f"    {loan['kind']} {loan['name']} {loan['path']}: {fate}"
    yield from (f"    VIOLATED: {text}" for text in violations(scene.log.events))


def played(plot: Head) -> tuple[Rehearsal, list[str], Mapping[str, Any] | None]:
    """As it goes; a journey on which the operator does nothing is one that other tests look at as well."""
    if plot.edits:
        scene = rehearsal_of(plot.example, access=permissions(), **plot.wishes)
        scribe = Scribe(plot, scene)
        result = scene.play(lambda done: scribe(scene.clock.now(), done))
        return scene, scribe.lines, result.plan
    recorded = recording(plot.example, **{name: tuple(value) for name, value in plot.wishes.items()})
    scribe = Scribe(plot, recorded.rehearsal)
    for moment, done in recorded:
        scribe(moment, done)
    return recorded.rehearsal, scribe.lines, recorded.result.plan


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_journey(file: Path, request: pytest.FixtureRequest) -> None:
    head, _, pinned = file.read_text(encoding="utf-8").partition(f"{RULE}\n")
    plot = Head.of(head)
    scene, lines, plan = played(plot)
    journey = "\n".join([*lines, *end_of(scene, plan), ""])
    if request.config.getoption("update_snapshots", default=False):
        file.write_text(f"{head}{RULE}\n{journey}", encoding="utf-8")
        pinned = journey
    assert journey.splitlines() == pinned.splitlines()
    assert not violations(scene.log.events)


def test_every_journey_is_told() -> None:
    """The four that the design asks for at least, and each with a head of its own."""
    heads = [file.read_text(encoding="utf-8").partition(f"{RULE}\n")[0] for file in FILES]
    assert len(set(heads)) == len(heads) >= 5


def described(action: object) -> str:
    """An action in a few words: what, and on which object."""
    ref = getattr(action, "ref", None) or getattr(getattr(action, "manifest", None), "ref", "")
    return f"{type(action).__name__} {ref}".strip()
