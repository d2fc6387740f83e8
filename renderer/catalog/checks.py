"""Reads the pre-flight checks of a template tree: packaged ones, what overlays add, replace and switch off.

A rendering needs none of it; who judges a cluster asks for it. A file of an overlay is judged when the tree is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from renderer.catalog.check_rules import wrong_with
from renderer.catalog.file_reader import FileReader, Validate
from renderer.catalog.kinds import Kinds
from renderer.catalog.places import PREFLIGHT
from renderer.catalog.probes import Raw, probe_from
from renderer.catalog.template_tree import TemplateTree
from renderer.errors import Problem, Problems
from renderer.frozen import frozen
from renderer.model.check import AnnotationOverride, Check, CheckSeverity, CheckTime, Denial, FieldOverride
from renderer.model.document_type import CHECKS
from renderer.model.manifest_spec import Expression
from renderer.model.path import Path, parse_path
from renderer.suggest import did_you_mean
from renderer.yaml_io import Document

_NODE = r"\bnode\s*[.\[]"
_NODE_IN_TEXT = re.compile(r"{[{%][^}]*" + _NODE)
"""The name `node` in an expression, and in a text with marks."""
_NO_OVERRIDE = "none"


@frozen
class DeclaredCheck:
    """A check with the document that declares it, at `path`; `raw` is its declaration, marks and all."""

    check: Check
    document: Document
    path: Path
    raw: Raw

    def problem(self, reason: str, message: str, remedy: str, *at: str) -> Problem:
        """A problem at a key of the declaration."""
        line = self.document.line_of((*self.path, *at))
        return Problem(reason=reason, file=self.document.file, line=line, message=message, remedy=remedy)


def load_checks(tree: TemplateTree, validate: Validate, kinds: Kinds) -> tuple[DeclaredCheck, ...]:
    """All checks, in the order of their files. Raises `Problems` with everything that is wrong."""
    reader = FileReader(tree, validate)
    found = read_checks(reader, kinds)
    if reader.problems:
        raise Problems(reader.problems, warnings=reader.warnings)
    return found


def read_checks(reader: FileReader, kinds: Kinds) -> tuple[DeclaredCheck, ...]:
    """The same; everything that is wrong is kept by the reader. Packaged checks are proven by the tests."""
    paths = [path for path in reader.files(PREFLIGHT) if path.count("/") == 1]
    packaged = {path: document for path in paths if (document := reader.document(path, CHECKS))}
    own = {path: packaged.pop(path) for path in list(packaged) if not reader.tree[path].packaged}
    known: dict[str, DeclaredCheck] = {}
    for document in packaged.values():
        _add(known, _declared(document, reader), reader, replaced=())
    ids = tuple(known)
    for document in own.values():
        added = list(_declared(document, reader))
        reader.problems += [problem for item in added for problem in wrong_with(item, kinds)]
        _add(known, added, reader, replaced=ids)
    for document in own.values():
        _switch_off(known, document, reader)
    return tuple(known.values())


def _declared(document: Document, reader: FileReader) -> Iterator[DeclaredCheck]:
    for index, raw in enumerate(document.value["checks"]):
        if "disabled" not in raw and (check := reader.read(document, lambda raw=raw: check_from(raw), None)):  # type: ignore[misc]
            yield DeclaredCheck(check=check, document=document, path=("checks", index), raw=raw)


def _add(
    known: dict[str, DeclaredCheck], added: Iterable[DeclaredCheck], reader: FileReader, *, replaced: Sequence[str]
) -> None:
    """A check takes the place of a packaged one, one of the ids in `replaced`."""
    seen = {name: item for name, item in known.items() if name not in replaced}
    for item in added:
        name = item.check.id
        if name in seen:
            message = f"check {name} is already declared in {seen[name].document.file}"
            reader.problems.append(item.problem("CheckConflict", message, "give each check an id of its own", "id"))
        seen[name] = known[name] = item


def _switch_off(known: dict[str, DeclaredCheck], document: Document, reader: FileReader) -> None:
    for index, raw in enumerate(document.value["checks"]):
        if "disabled" not in raw:
            continue
        if (found := known.get(raw["id"])) is None:
            message = f"check {raw['id']!r} not found{did_you_mean(raw['id'], known)}"
            line = document.line_of(("checks", index, "id"))
            remedy = "`upgradeplan preflight --all` lists the checks"
            reader.problems.append(
                Problem(reason="UnknownCheck", file=document.file, line=line, message=message, remedy=remedy)
            )
        else:
            known[raw["id"]] = replace(found, check=replace(found.check, off=raw["reason"]))


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
        remedy=raw["remedy"],
        override=_override(override) if isinstance(override, Mapping) else None,
        acceptable=override != _NO_OVERRIDE,
        terminal=raw.get("terminal", False),
        denial=Denial(**raw.get("denial", {})),
        source=raw["source"],
        per_node=_speaks_of_node(raw),
    )


def _speaks_of_node(raw: Raw) -> bool:
    expression = raw.get("applies", {}).get("expr", "")
    return bool(re.search(_NODE, expression)) or any(map(_NODE_IN_TEXT.search, _texts(raw["probe"])))


def _override(raw: Raw) -> AnnotationOverride | FieldOverride:
    if "annotation" in raw:
        return AnnotationOverride(key=raw["annotation"], equals=raw["equals"])
    return FieldOverride(path=parse_path(raw["field"]), equals=raw["equals"])


def _texts(value: Any) -> Iterator[str]:
    """Every text that is filled in before it is used."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for item in value.values() for text in _texts(item))
    elif isinstance(value, (list, tuple)):
        yield from (text for item in value for text in _texts(item))
