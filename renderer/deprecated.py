"""Reads documents in the form that they had before 0.2, without apiVersion and with other names of keys, and warns.

The only place that knows that form; to be deleted in 0.3, with its callers. It changes names and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.model.document_type import KINDS, DocumentType
from renderer.model.path import Path, path_name
from renderer.yaml_io import Document

REMOVED_IN = "0.3"

_STEP = {
    "despiteOthers": "ignoreUnhealthyPeers",
    "keepsLane": "holdSlotWhile",
    "joins": "lateNodes",
    "seed": "initialNodeState",
    "traces": "removeFields",
}
_REASON = {"because": "reason"}
_KEYS: Mapping[tuple[str, ...], Mapping[str, str]] = {
    (): {"announce": "emitEvents"},
    ("lanes", "*"): {"others": "requirePeers"},
    **dict.fromkeys((("enter",), ("steps",), ("leave",), ("undo",)), _STEP),
    **dict.fromkeys(
        (("skipWhen",), ("skipUnless",), ("joins",), ("lateNodes",), ("absent",), ("when",), ("lint",)), _REASON
    ),
    ("owned",): {"takeOver": "setOnTakeOver"},
    ("borrowed",): {"inherits": "originalsOnTakeOver"},
    ("capture", "*"): {"inherits": "valueOnTakeOver"},
    ("condition",): {"is": "status"},
}
"""The keys of a mapping that have new names, by the last names on the way to the mapping; () is the document itself."""


@frozen
class Current:
    """A document in its present form, a warning for everything that had to be changed, and a problem for each key that
    is given under both its names."""

    document: Document
    warnings: tuple[Problem, ...] = ()
    problems: tuple[Problem, ...] = ()


def current(document: Document, of: DocumentType) -> Current:
    """The document as it would be written today. What is not of the old form stays as it is."""
    renames = _Renames(document)
    value = document.value
    warnings = [_missing_header(document, of)] if _has_no_header(value, of) else []
    renamed = renames.of(value, ())
    if _has_no_header(value, of):
        renamed = of.document({"kinds": renamed} if isinstance(renamed, list) else renamed)
    changed = document if renamed is value else document.with_value(renamed)
    return Current(document=changed, warnings=(*warnings, *renames.warnings), problems=tuple(renames.problems))


def redact_of_diffs(document: Document, warnings: list[Problem]) -> dict[str, Any]:
    """The redactions of DiffRules, as RedactionRules have them."""
    warnings.append(
        Problem(
            reason="Deprecated",
            message=f"the key is now 'kinds' of RedactionRules; release {REMOVED_IN} will refuse 'redact'",
            file=document.file,
            line=document.line_of(("redact",)),
            field="redact",
            remedy="move its rules to a file of the folder _redaction, below `kinds:`",
        )
    )
    return {"kinds": document.value["redact"]}


def _has_no_header(value: Any, of: DocumentType) -> bool:
    if isinstance(value, list):
        return of is KINDS
    return isinstance(value, Mapping) and "apiVersion" not in value and "kind" not in value


def _missing_header(document: Document, of: DocumentType) -> Problem:
    rows = " and `kinds:` above the rows" if isinstance(document.value, list) else ""
    return Problem(
        reason="Deprecated",
        message=f"has no apiVersion and kind; release {REMOVED_IN} will refuse it",
        file=document.file,
        line=document.line,
        remedy=f"add the lines `apiVersion: {of.api_version}` and `kind: {of.kind}`{rows}",
    )


class _Renames:
    """Gives the keys of one document their new names."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self.warnings: list[Problem] = []
        self.problems: list[Problem] = []

    def of(self, value: Any, path: Path) -> Any:
        """The value with new names; the very same one where it has no old ones."""
        if isinstance(value, list):
            items = [self.of(item, (*path, index)) for index, item in enumerate(value)]
            return value if all(new is old for new, old in zip(items, value, strict=True)) else items
        if not isinstance(value, dict):
            return value
        entries = dict(self._entries(value, path))
        same = list(entries) == list(value) and all(entries[key] is value[key] for key in entries)
        return value if same else entries

    def _entries(self, value: dict[str, Any], path: Path) -> Iterator[tuple[str, Any]]:
        names = _names_at(tuple(part for part in path if isinstance(part, str)))
        for key, item in value.items():
            new = names.get(key)
            if new is not None and new in value:
                self.problems.append(_both(self._document, (*path, key), new))
                continue
            if new is not None:
                self.warnings.append(_old_key(self._document, (*path, key), new))
            yield new or key, self.of(item, (*path, key))


def _names_at(path: tuple[str, ...]) -> Mapping[str, str]:
    ways = (path[-1:], (path[-2], "*")) if len(path) > 1 else (path,)
    return next((_KEYS[way] for way in ways if way in _KEYS), {})


def _old_key(document: Document, path: Path, new: str) -> Problem:
    return Problem(
        reason="Deprecated",
        message=f"the key is now '{new}'; release {REMOVED_IN} will refuse '{path[-1]}'",
        file=document.file,
        line=document.line_of(path),
        field=path_name(path),
        remedy=f"write `{new}:`",
    )


def _both(document: Document, path: Path, new: str) -> Problem:
    return Problem(
        reason="OldAndNewKey",
        message=f"both '{path[-1]}' (old name) and '{new}' are given",
        file=document.file,
        line=document.line_of(path),
        field=path_name(path),
        remedy=f"keep `{new}:`, and remove `{path[-1]}:`",
    )
