"""Reads the pre-flight checks of a template tree: packaged ones, what overlays add, replace and switch off.

A rendering needs none of it; who judges a cluster asks for it. A file of an overlay is judged when the tree is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from renderer.catalog.check_rules import wrong_with
from renderer.catalog.entries import DeclarationPlace, EntryList, texts_of
from renderer.catalog.file_reader import FileReader, Validate
from renderer.catalog.kinds import Kinds
from renderer.catalog.places import PREFLIGHT
from renderer.catalog.probes import Raw, probe_from
from renderer.catalog.template_tree import TemplateTree
from renderer.errors import Problem, Problems
from renderer.frozen import frozen
from renderer.model.check import (
    AnnotationOverride,
    Check,
    CheckSeverity,
    CheckTime,
    Denial,
    FieldOverride,
    PassesWhen,
)
from renderer.model.document_type import CHECKS
from renderer.model.manifest_spec import Expression
from renderer.model.path import parse_path
from renderer.yaml_io import Document

_NODE = r"\bnode\s*[.\[]"
_NODE_IN_TEXT = re.compile(r"{[{%][^}]*" + _NODE)
"""The name `node` in an expression, and in a text with marks."""
_NO_OVERRIDE = "none"


@frozen
class DeclaredCheck:
    """A check, and the place that declares it."""

    check: Check
    place: DeclarationPlace

    @property
    def id(self) -> str:
        return self.check.id

    @property
    def document(self) -> Document:
        return self.place.document

    @property
    def raw(self) -> Raw:
        return self.place.raw

    def problem(self, reason: str, message: str, remedy: str, *at: str) -> Problem:
        """A problem at a key of the declaration."""
        return self.place.problem(reason, message, remedy, *at)

    def switched_off(self, why: str) -> DeclaredCheck:
        return replace(self, check=replace(self.check, off=why))


def load_checks(tree: TemplateTree, validate: Validate, kinds: Kinds) -> tuple[DeclaredCheck, ...]:
    """All checks, in the order of their files. Raises `Problems` with everything that is wrong."""
    reader = FileReader(tree, validate)
    found = read_checks(reader, kinds)
    if reader.problems:
        raise Problems(reader.problems, warnings=reader.warnings)
    return found


def read_checks(reader: FileReader, kinds: Kinds) -> tuple[DeclaredCheck, ...]:
    """The same; everything that is wrong is kept by the reader."""
    return EntryList(
        folder=PREFLIGHT,
        of=CHECKS,
        key="checks",
        noun="check",
        listed_by="`upgradeplan preflight --all` lists the checks",
        taken=lambda at, message: at.problem("CheckConflict", message, "give each check an id of its own", "id"),
        unknown="UnknownCheck",
        read=lambda place: DeclaredCheck(check=check_from(place.raw), place=place),
        wrong_with=lambda declared: wrong_with(declared, kinds),
    ).entries(reader)


def check_from(raw: Raw) -> Check:
    """Reads one declaration that has passed its schema. Raises `ValueError` for a path or pattern that cannot be
    read."""
    applies, override = raw.get("applies"), raw.get("override")
    return Check(
        id=raw["id"],
        title=raw["title"],
        severity=CheckSeverity(raw["severity"]),
        when=tuple(CheckTime(item) for item in raw["when"]),
        probe=probe_from(raw["probe"]),
        applies=Expression(expr=applies["expr"], reason=applies["reason"]) if applies else None,
        offender=raw.get("offender"),
        says=raw.get("says"),
        passes_when=PassesWhen(**raw["passesWhen"]) if "passesWhen" in raw else None,
        remedy=raw["remedy"],
        override=_override(override) if isinstance(override, Mapping) else None,
        acceptable=override != _NO_OVERRIDE,
        patient=raw.get("patient", False),
        terminal=raw.get("terminal", False),
        settles=raw.get("settles", False),
        denial=Denial(**raw.get("denial", {})),
        source=raw["source"],
        per_node=_speaks_of_node(raw),
    )


def _speaks_of_node(raw: Raw) -> bool:
    expression = raw.get("applies", {}).get("expr", "")
    return bool(re.search(_NODE, expression)) or any(map(_NODE_IN_TEXT.search, texts_of(raw["probe"])))


def _override(raw: Raw) -> AnnotationOverride | FieldOverride:
    if "annotation" in raw:
        return AnnotationOverride(key=raw["annotation"], equals=raw["equals"])
    return FieldOverride(path=parse_path(raw["field"]), equals=raw["equals"])
