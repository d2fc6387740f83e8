"""Loads the template tree into a catalog: kinds, values, phases in the order of their numbers.

A packaged file is proven by the tests; one from an overlay is checked against its schema each time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from renderer.catalog.declare import phase_from
from renderer.catalog.kinds import KindRow, Kinds, rows_from
from renderer.catalog.places import PHASE_FILE, VALUES_FILE, unused
from renderer.catalog.probes import UnreadableAmount
from renderer.catalog.tree import Template, Tree
from renderer.catalog.verify import verify_phases
from renderer.errors import Problem, Problems, problem
from renderer.frozen import frozen
from renderer.model.path import UnreadablePath
from renderer.model.phase import Phase
from renderer.yaml_io import Document, parse

_PHASE_FOLDER = re.compile(r"(\d\d)-[a-z0-9]+(-[a-z0-9]+)*")

Validate = Callable[[Document, str], list[Problem]]
"""Checks a document against a schema by its name."""


@frozen
class Declared:
    """A phase with the document that declares it."""

    phase: Phase
    document: Document

    @property
    def raw(self) -> Mapping[str, Any]:
        """The document's body, marks and all."""
        body: Mapping[str, Any] = self.document.value
        return body


@frozen
class Catalog:
    """What the template tree declares, phases in the order in which they run."""

    kinds: Kinds
    values: Mapping[str, Any]
    phases: tuple[Declared, ...]
    tree: Tree


def load_catalog(tree: Tree, validate: Validate) -> Catalog:
    """Raises `Problems` with everything that is wrong in the tree."""
    loader = _Loader(tree, validate)
    kinds = Kinds(row for path in sorted(tree) if _is_kinds(path) for row in loader.kind_rows(path))
    values = loader.values()
    found = (loader.declared(path) for path in sorted(tree) if path.endswith(f"/{PHASE_FILE}"))
    phases = sorted((item for item in found if item), key=lambda item: (item.phase.number, item.phase.folder))
    loader.problems += unused(tree)
    loader.problems += verify_phases([(item.phase, item.document) for item in phases], tree)
    if loader.problems:
        raise Problems(loader.problems)
    return Catalog(kinds=kinds, values=values, phases=tuple(phases), tree=tree)


def _is_kinds(path: str) -> bool:
    return path.startswith("_kinds/") and path.endswith(".yaml")


class _Loader:
    """Reads one file after the other and keeps what is wrong, so that one run tells all of it."""

    def __init__(self, tree: Tree, validate: Validate) -> None:
        self._tree = tree
        self._validate = validate
        self.problems: list[Problem] = []

    def kind_rows(self, path: str) -> list[KindRow]:
        document = self._document(path, "kinds")
        return self._read(document, lambda: list(rows_from(document.value)), []) if document else []

    def values(self) -> Mapping[str, Any]:
        document = self._document(VALUES_FILE, "values")
        return document.value if document else {}

    def declared(self, path: str) -> Declared | None:
        folder, _, _ = path.rpartition("/")
        if not _PHASE_FOLDER.fullmatch(folder):
            self._keep(
                problem(
                    "PhaseFolder",
                    f"{folder!r} is no phase folder",
                    file=self._tree[path].shown,
                    remedy="name it by two digits and words in lower case, such as 15-pre-check",
                )
            )
            return None
        document = self._document(path, "phase")
        if document is None:
            return None
        phase = self._read(document, lambda: phase_from(document.value, number=int(folder[:2]), folder=folder), None)
        return Declared(phase=phase, document=document) if phase else None

    def _document(self, path: str, schema: str) -> Document | None:
        template = self._tree.get(path)
        if template is None:
            remedy = "put the file into the template tree"
            self._keep(problem("TemplateNotFound", f"there is no file {path!r} in the template tree", remedy=remedy))
            return None
        try:
            documents = parse(template.text, template.shown)
        except Problems as error:
            self._keep(error)
            return None
        if len(documents) != 1:
            message = f"holds {len(documents) or 'no'} documents, wanted one"
            remedy = "give each document its own file" if documents else "fill it, or remove it"
            self._keep(problem("InvalidYAML", message, file=template.shown, remedy=remedy))
            return None
        return documents[0] if self._valid(template, documents[0], schema) else None

    def _valid(self, template: Template, document: Document, schema: str) -> bool:
        found = [] if template.packaged else self._validate(document, schema)
        self.problems += found
        return not found

    def _read(self, document: Document, read: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return read()
        except ValueError as error:
            remedy = "write it as the packaged files do"
            line = document.line_with(error.text) if isinstance(error, UnreadablePath | UnreadableAmount) else None
            self._keep(problem("InvalidDeclaration", str(error), file=document.file, line=line, remedy=remedy))
            return otherwise

    def _keep(self, error: Problems) -> None:
        self.problems += error.problems
