"""Reads the known causes of a template tree: packaged ones, what overlays add, replace and switch off.

A rendering needs none of them; `explain` and `diagnose` do. A file of an overlay is checked when the tree is
loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from renderer.catalog.cause_rules import CauseWorld, unknown_ids, wrong_with
from renderer.catalog.entries import DeclarationPlace, EntryList
from renderer.catalog.file_reader import FileReader, Validate
from renderer.catalog.places import DIAGNOSIS
from renderer.catalog.probes import Raw, every_from, predicate_from, target_from
from renderer.catalog.template_tree import TemplateTree
from renderer.errors import Problem, Problems
from renderer.frozen import frozen
from renderer.model.document_type import CAUSES
from renderer.model.known_cause import (
    Answered,
    CauseMoment,
    FoundByCheck,
    Join,
    KnownCause,
    Link,
    LogLink,
    Pattern,
    Restart,
    Search,
    Sign,
    Take,
)
from renderer.model.path import parse_path
from renderer.model.probe import EveryTarget, ObjectTarget
from renderer.patterns import compiled
from renderer.yaml_io import Document

OBJECT = "object"
"""The name of the first object of a pattern."""


@frozen
class DeclaredCause:
    """A known cause, and the place that declares it."""

    cause: KnownCause
    place: DeclarationPlace

    @property
    def id(self) -> str:
        return self.cause.id

    @property
    def document(self) -> Document:
        return self.place.document

    def problem(self, reason: str, message: str, remedy: str, *at: str) -> Problem:
        """A problem at a key of the declaration."""
        return self.place.problem(reason, message, remedy, *at)

    def switched_off(self, why: str) -> DeclaredCause:
        return replace(self, cause=replace(self.cause, off=why))


def load_causes(tree: TemplateTree, validate: Validate, world: CauseWorld) -> tuple[DeclaredCause, ...]:
    """All causes, in the order of their files, which is the order in which they are looked for. Raises `Problems`."""
    reader = FileReader(tree, validate)
    found = read_causes(reader, world)
    if reader.problems:
        raise Problems(reader.problems, warnings=reader.warnings)
    return found


def read_causes(reader: FileReader, world: CauseWorld) -> tuple[DeclaredCause, ...]:
    """The same; everything that is wrong is kept by the reader."""
    found = EntryList(
        folder=DIAGNOSIS,
        of=CAUSES,
        key="causes",
        noun="cause",
        listed_by="the reference has a page of all causes",
        taken=lambda at, message: at.problem("CauseConflict", message, "give each cause an id of its own", "id"),
        unknown="UnknownCause",
        read=lambda place: DeclaredCause(cause=cause_from(place.raw), place=place),
        wrong_with=lambda declared: wrong_with(declared, world),
    ).entries(reader)
    shown = {template.shown for template in reader.tree.values() if not template.packaged}
    own = [item for item in found if item.document.file in shown]
    reader.problems += [problem for item in own for problem in unknown_ids(item, [other.id for other in found])]
    return found


def cause_from(raw: Raw) -> KnownCause:
    """Reads one declaration that has passed its schema. Raises `ValueError` for a path or a regular expression that
    cannot be read."""
    return KnownCause(
        id=raw["id"],
        title=raw["title"],
        sign=_sign(raw),
        phases=tuple(raw.get("phases", ())),
        moments=tuple(CauseMoment(item) for item in raw.get("when", (CauseMoment.WAITING,))),
        chain=tuple(_link(item, number, raw["follow"]) for number, item in enumerate(raw.get("follow", ()))),
        condition=raw.get("if"),
        object_of=raw.get("blame", OBJECT),
        offender=raw.get("offender"),
        node=raw.get("node"),
        what=raw.get("what"),
        since=raw.get("since"),
        remedy=raw.get("remedy"),
        patience=raw.get("patience", {}).get("if"),
        wait=raw.get("patience", {}).get("says"),
        unless=tuple(raw.get("unless", ())),
        docs=raw.get("docs", ""),
        restart=Restart(raw.get("restart", Restart.BY_PHASE)),
        source=raw["source"],
    )


def _sign(raw: Raw) -> Sign:
    if "pattern" in raw:
        target = target_from(raw["pattern"])
        if not isinstance(target, (EveryTarget, ObjectTarget)):
            raise ValueError("a pattern begins with an object, or with every object of a kind")
        return Pattern(target=target, all=tuple(predicate_from(item) for item in raw["pattern"].get("all", ())))
    if "search" in raw:
        says = raw["search"].get("says")
        return Search(name=raw["search"]["name"], says=_pattern(says) if says else None)
    if "check" in raw:
        return FoundByCheck(check=raw["check"])
    return Answered(matches=_pattern(raw["answer"]["matches"]))


def _link(raw: Raw, number: int, chain: list[Raw]) -> Link | LogLink:
    """A link goes on from the one before it where it does not say from where."""
    start = raw.get("from") or (chain[number - 1]["as"] if number else OBJECT)
    if "log" in raw:
        return LogLink(name=raw["as"], start=start, matches=_pattern(raw["log"]))
    by = raw["by"]
    join, fields = (Join.FIELDS, by) if isinstance(by, Mapping) else (Join(by), {})
    return Link(
        name=raw["as"],
        start=start,
        target=every_from(raw["every"]),
        join=join,
        fields=tuple((parse_path(theirs), parse_path(ours)) for theirs, ours in fields.items()),
        all=tuple(predicate_from(item) for item in raw.get("all", ())),
        take=Take(raw.get("take", Take.EACH)),
    )


def _pattern(text: str) -> str:
    compiled(text)
    return text
