"""Compares two rendered trees as they stand in Git: objects and what the upgrade waits for, as `compare` does with two
renderings, and the other files by name. Pure; a file is parsed only where its text differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from renderer.compare import ComparedItem, Difference, Thing, described, differences_of, step_thing
from renderer.errors import Problems
from renderer.frozen import frozen
from renderer.model.ref import ref_of
from renderer.redaction import RedactionRules, Redactor, numbered
from renderer.yaml_io import parse

Entry = Mapping[str, Any]
_PAGES = ("index.yaml", "UPGRADE.md", "SUMMARY.md")
"""For people: all that they say is compared otherwise."""


@frozen
class WrittenTree:
    """A tree's index, and the text of its other files by their paths."""

    index: Entry
    files: Mapping[str, str]


@frozen
class TreeDifferences:
    """`files` are those that hold no manifest of the index, such as an agent's own objects."""

    objects: tuple[Difference, ...]
    files: tuple[str, ...]


def compare_trees(before: WrittenTree, after: WrittenTree, redaction: RedactionRules) -> TreeDifferences:
    redactor = Redactor(redaction, numbered)
    left, right = (list(_things(one, other, redactor)) for one, other in ((before, after), (after, before)))
    listed = {entry["file"] for tree in (before, after) for entry in _manifests(tree.index)}
    others = {file for file in (*before.files, *after.files) if file not in listed and file not in _PAGES}
    return TreeDifferences(
        objects=differences_of(left, right),
        files=tuple(sorted(file for file in others if before.files.get(file) != after.files.get(file))),
    )


def _things(tree: WrittenTree, other: WrittenTree, redactor: Redactor) -> Iterator[Thing]:
    bodies: dict[str, Mapping[str, Any]] = {}
    for number, phase in enumerate(tree.index["phases"]):
        name, places = phase["name"], count()
        body = described(phase)
        yield Thing(subject=ComparedItem.PHASE, name=name, phase=name, place=(number, next(places)), body=body)
        for step in phase.get("steps", ()):
            place = (number, next(places))
            yield step_thing(name, step["name"], place, step)
            for node, entry in _manifests_of(step):
                file = entry["file"]
                if file not in bodies:
                    bodies[file] = _bodies(tree, other, file, redactor)
                yield Thing(
                    subject=ComparedItem.MANIFEST,
                    name=entry["object"],
                    phase=name,
                    step=step["name"],
                    node=node,
                    template=file.rpartition("/")[2],
                    ref=entry["object"],
                    place=place,
                    body=bodies[file].get(entry["object"], {}),
                )


def _manifests(index: Entry) -> Iterator[Entry]:
    for phase in index["phases"]:
        for step in phase.get("steps", ()):
            yield from (entry for _, entry in _manifests_of(step))


def _manifests_of(step: Entry) -> Iterator[tuple[str, Entry]]:
    """Each manifest with its node, empty where the step does not fan out."""
    for holder in (step, step.get("undo") or {}):
        yield from (("", entry) for entry in holder.get("manifests", ()))
    for node in step.get("nodes", ()):
        yield from ((node["name"], entry) for entry in node.get("manifests", ()))


def _bodies(tree: WrittenTree, other: WrittenTree, file: str, redactor: Redactor) -> Mapping[str, Any]:
    """The objects of a file by their names, without what is secret; none where both trees have the same text, and none
    of a file that cannot be read."""
    text = tree.files.get(file, "")
    if text == other.files.get(file):
        return {}
    try:
        values = [document.value for document in parse(text, file)]
    except Problems:
        return {}
    return {str(ref_of(value)): redactor.body(value) for value in values if _is_object(value)}


def _is_object(value: Any) -> bool:
    return isinstance(value, Mapping) and isinstance(value.get("metadata"), Mapping) and "kind" in value
