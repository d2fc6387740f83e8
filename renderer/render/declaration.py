"""Fills in the text of a step's declaration, with what the plan, the cluster and the run give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from renderer.catalog.declare import refilled
from renderer.catalog.load import Declared
from renderer.context.build import Context
from renderer.errors import problem
from renderer.frozen import frozen
from renderer.model.phase import Step
from renderer.templating import Templates, has_marks
from renderer.yaml_io import Document

Raw = Mapping[str, Any]


@frozen
class DeclarationFiller:
    """`fixed` remembers parts of the catalog's declarations, by identity: whether they have nothing to fill in, as most
    have not."""

    templates: Templates
    fixed: dict[int, bool] = field(default_factory=dict, repr=False, compare=False)

    def fill_step(self, raw: Raw, context: Context, declared: Declared) -> dict[str, Any]:
        """The step alone: how it is undone is filled in automatically."""
        return {key: self.fill(item, context.names, declared.document) for key, item in raw.items() if key != "undo"}

    def fill(self, value: Any, names: Mapping[str, Any], document: Document) -> Any:
        """The value with its texts filled in; itself where there is nothing to fill in."""
        if self._is_fixed(value):
            return value
        if isinstance(value, str):
            return self.templates.render_string(value, names, of=document)
        if isinstance(value, dict):
            return {key: self.fill(item, names, document) for key, item in value.items()}
        return [self.fill(item, names, document) for item in value]

    def step(self, filled: Raw, bare: Step, raw: Raw, declared: Declared) -> Step:
        """A step of text that is filled in: what could be read as declared may not be, once a value stands in it."""
        try:
            return refilled(bare, raw, filled)
        except ValueError as error:
            message, remedy = f"step {bare.name}: {error}", "correct the value that the plan or the cluster gives"
            file, line = declared.document.file, declared.document.line_with(bare.name)
            raise problem("InvalidDeclaration", message, file=file, line=line, remedy=remedy) from error

    def _is_fixed(self, value: Any) -> bool:
        if isinstance(value, str):
            return not has_marks(value)
        if not isinstance(value, (dict, list)):
            return True
        found = self.fixed.get(id(value))
        if found is None:
            parts = value.values() if isinstance(value, dict) else value
            found = self.fixed[id(value)] = all(self._is_fixed(part) for part in parts)
        return found


def without_bookkeeping(filled: Raw, raw: Raw) -> Raw:
    """The borrowed manifests of a filled in step, with the originals for a take-over as declared: they are read from
    annotations that are written while the plan runs, and an approval has to hold then."""
    key = "originalsOnTakeOver"
    pairs = zip(filled.get("borrowed", ()), raw.get("borrowed", ()), strict=True)
    borrowed = [{**item, key: declared[key]} if key in declared else item for item, declared in pairs]
    return {"borrowed": borrowed} if borrowed else {}
