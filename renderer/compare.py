"""Compares two renderings: manifests, steps and phases, each difference with its fields.

Pure. Objects are paired by the step that applies them and by what they are called; what is left is paired by its
object (it has moved) and by its template (it has another name).
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from enum import StrEnum
from itertools import count
from typing import Any

from renderer.catalog.kinds import Kinds
from renderer.frozen import frozen
from renderer.layout.index import index_of
from renderer.model.path import Path, path_name
from renderer.model.phase import Step
from renderer.model.ref import Ref
from renderer.model.rendered import Manifest, RenderedPlan, RenderedStep
from renderer.redaction import RedactionRules, Redactor, numbered
from renderer.yaml_io import dump


class ChangeType(StrEnum):
    """The way in which the right side differs from the left one."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"
    MOVED = "moved"  # the same object at another step; it may have changed as well


class ComparedItem(StrEnum):
    """The kind of thing that differs."""

    PHASE = "phase"
    STEP = "step"
    MANIFEST = "manifest"


@frozen
class Side:
    """A rendering, the kinds table that it was made with, and what is secret in it."""

    plan: RenderedPlan
    kinds: Kinds
    redaction: RedactionRules


@frozen
class Difference:
    """`name` is the object, `Phase/Step` or the phase. `fields` are paths, empty where a whole thing was added or
    removed; `diff` is a unified diff of the YAML, empty where only what YAML does not show differs. `node` is set for
    what is done once a node."""

    operation: ChangeType
    subject: ComparedItem
    name: str
    phase: str
    step: str = ""
    node: str = ""
    template: str = ""
    fields: tuple[str, ...] = ()
    diff: str = ""


@frozen
class Thing:
    """A phase, a step or a manifest that can be compared; `place` sorts it among the things of its side."""

    subject: ComparedItem
    name: str
    place: tuple[int, int]
    phase: str
    step: str = ""
    node: str = ""
    template: str = ""
    ref: Ref | str | None = None
    body: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, ...]:
        return (self.subject, self.phase, self.step, self.node, self.name)


def compare(left: Side, right: Side) -> tuple[Difference, ...]:
    """Every difference, in the order in which the upgrade runs; what is secret is shown as marks."""
    redactor = Redactor(right.redaction, numbered)
    before, after = list(_things(left, redactor)), list(_things(right, redactor))
    placed = list(_differences(before, after))
    placed += _hidden(left, right, after, {(difference.phase, difference.step) for _, difference in placed})
    return _in_order(placed)


def differences_of(before: list[Thing], after: list[Thing]) -> tuple[Difference, ...]:
    """The same for things that somebody else has read."""
    return _in_order(list(_differences(before, after)))


def _in_order(placed: list[_Placed]) -> tuple[Difference, ...]:
    outside_in = list(ComparedItem)
    placed.sort(key=lambda item: (item[0], outside_in.index(item[1].subject)))
    return tuple(difference for _, difference in placed)


# ------------------------------------------------------------------------------------------------ what is compared


def _things(side: Side, redactor: Redactor) -> Iterator[Thing]:
    index = index_of(side.plan, side.kinds, (), "plain")
    for phase, entry in zip(side.plan.phases, index["phases"], strict=True):
        name, places = phase.phase.name, count()
        steps = entry.pop("steps", ())
        yield Thing(
            subject=ComparedItem.PHASE,
            name=name,
            phase=name,
            place=(phase.phase.number, next(places)),
            body=described(entry),
        )
        by_step = {step["name"]: step for step in steps}
        for step in phase.steps:
            place = (phase.phase.number, next(places))
            if (words := by_step.pop(step.step.name, None)) is not None:
                yield step_thing(name, step.step.name, place, words)
            for part in (step, step.undo) if step.undo else (step,):
                yield from (_manifest_thing(part, item, place, redactor) for item in part.manifests)


def described(entry: Mapping[str, Any]) -> dict[str, Any]:
    """The index entry of a phase or step without its manifests: those are compared as such."""
    return {
        key: described(value) if isinstance(value, Mapping) else value
        for key, value in entry.items()
        if key not in ("manifests", "nodes", "steps")
    }


def step_thing(phase: str, step: str, place: tuple[int, int], words: Mapping[str, Any]) -> Thing:
    return Thing(
        subject=ComparedItem.STEP, name=f"{phase}/{step}", phase=phase, step=step, place=place, body=described(words)
    )


def _manifest_thing(step: RenderedStep, manifest: Manifest, place: tuple[int, int], redactor: Redactor) -> Thing:
    return Thing(
        subject=ComparedItem.MANIFEST,
        name=str(manifest.ref),
        phase=step.phase,
        step=step.step.name,
        node=step.step.node or "",
        template=manifest.spec.file,
        ref=manifest.ref,
        place=place,
        body=redactor.body(manifest.body),
    )


# ---------------------------------------------------------------------------------------------------------- pairing

_Placed = tuple[tuple[int, int], Difference]


def _differences(before: list[Thing], after: list[Thing]) -> Iterator[_Placed]:
    pairs, old, new = _pairs(before, after)
    for left, right in pairs:
        if left.body != right.body or (left.phase, left.step) != (right.phase, right.step):
            yield right.place, _changed(left, right)
    gone = {(thing.phase, operation) for operation, things in _ends(old, new) for thing in things if not thing.step}
    for operation, things in _ends(old, new):
        for thing in things:
            # The steps of an added or removed phase add nothing; its manifests do.
            if thing.subject is not ComparedItem.STEP or (thing.phase, operation) not in gone:
                yield thing.place, _whole(operation, thing)


def _ends(old: list[Thing], new: list[Thing]) -> tuple[tuple[ChangeType, list[Thing]], ...]:
    return (ChangeType.REMOVED, old), (ChangeType.ADDED, new)


def _pairs(before: list[Thing], after: list[Thing]) -> tuple[list[tuple[Thing, Thing]], list[Thing], list[Thing]]:
    """Pairs, and what is left on either side. A later rule sees only what the earlier ones have left."""
    pairs: list[tuple[Thing, Thing]] = []
    for rule in (lambda t: t.key, lambda t: t.ref, lambda t: t.ref and (t.phase, t.step, t.node, t.template)):
        known = _only(before, rule)
        found = [(known[mark], thing) for mark, thing in _only(after, rule).items() if mark in known]
        paired = {id(thing) for pair in found for thing in pair}
        before = [thing for thing in before if id(thing) not in paired]
        after = [thing for thing in after if id(thing) not in paired]
        pairs += found
    return pairs, before, after


def _only(things: list[Thing], rule: Callable[[Thing], object]) -> dict[object, Thing]:
    """Each thing by its mark, where no other has the same; a thing without a mark is left out."""
    counted = Counter(rule(thing) for thing in things)
    return {rule(thing): thing for thing in things if rule(thing) is not None and counted[rule(thing)] == 1}


# ------------------------------------------------------------------------------------------------------ differences


def _changed(left: Thing, right: Thing) -> Difference:
    moved = (left.phase, left.step) != (right.phase, right.step)
    renamed = left.name != right.name and not moved
    return Difference(
        operation=ChangeType.MOVED if moved else ChangeType.CHANGED,
        subject=right.subject,
        name=f"{left.name} -> {right.name}" if renamed else right.name,
        phase=right.phase,
        step=right.step,
        node=right.node,
        template=right.template,
        fields=tuple(path_name(path) for path in differing(left.body, right.body)),
        diff=_diff(left, right),
    )


def _whole(operation: ChangeType, thing: Thing) -> Difference:
    sides = (thing, None) if operation is ChangeType.REMOVED else (None, thing)
    return Difference(
        operation=operation,
        subject=thing.subject,
        name=thing.name,
        phase=thing.phase,
        step=thing.step,
        node=thing.node,
        template=thing.template,
        diff=_diff(*sides),
    )


def differing(left: Any, right: Any, path: Path = ()) -> Iterator[Path]:
    """The paths at which two values differ; a list whose length differs counts as one value."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in dict.fromkeys((*left, *right)):
            if key not in left or key not in right:
                yield (*path, key)
            else:
                yield from differing(left[key], right[key], (*path, key))
    elif isinstance(left, (list, tuple)) and isinstance(right, type(left)) and len(left) == len(right):
        for index, (one, other) in enumerate(zip(left, right, strict=True)):
            yield from differing(one, other, (*path, index))
    elif left != right or type(left) is not type(right):
        yield path


def _diff(left: Thing | None, right: Thing | None) -> str:
    old, new = (dump(thing.body).splitlines() if thing else [] for thing in (left, right))
    names = (f"a/{_label(left)}" if left else "/dev/null", f"b/{_label(right)}" if right else "/dev/null")
    return "".join(f"{line}\n" for line in difflib.unified_diff(old, new, *names, lineterm=""))


def _label(thing: Thing) -> str:
    return "/".join(part for part in (thing.phase, thing.step, thing.node, thing.template) if part)


def _hidden(left: Side, right: Side, after: list[Thing], shown: set[tuple[str, str]]) -> Iterator[_Placed]:
    """Steps that differ in what neither index nor manifests show, such as after how long a wait counts as slow."""
    old, new = _declared(left.plan), _declared(right.plan)
    for thing in after:
        step = (thing.phase, thing.step)
        if thing.subject is ComparedItem.STEP and step in old and step in new and step not in shown:
            paths = [*differing(asdict(old[step]), asdict(new[step]))]
            if paths:
                names = tuple(path_name(tuple(map(_camel, path))) for path in paths)
                yield thing.place, replace(_changed(thing, thing), fields=names)


def _declared(plan: RenderedPlan) -> dict[tuple[str, str], Step]:
    """Each step by phase and name, the first node's where it fans out."""
    steps = (step for phase in reversed(plan.phases) for step in reversed(phase.steps))
    return {(step.phase, step.step.name): step.step for step in steps}


def _camel(word: str | int) -> str | int:
    """A name of the model as it is written in `phase.yaml`."""
    if isinstance(word, int):
        return word
    first, *others = word.split("_")
    return first + "".join(other.capitalize() for other in others)
