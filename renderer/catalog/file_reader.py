"""Reads the documents of a template tree one by one and collects their problems, so that one run reports all of them.

Packaged files are proven by the tests; files of an overlay are checked against their schemas each time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TypeVar

from renderer.catalog.probes import AmountError
from renderer.catalog.template_tree import TemplateTree
from renderer.deprecated import current
from renderer.errors import Problem, Problems, problem
from renderer.model.document_type import DocumentType
from renderer.model.path import PathError
from renderer.patterns import PatternError
from renderer.yaml_io import Document, parse

_WITH_TEXT = (PathError, AmountError, PatternError)
"""Errors that know the text that is wrong, and so its line."""

Validate = Callable[[Document, DocumentType], list[Problem]]
"""Checks a document against the schema of its type."""

T = TypeVar("T")


class FileReader:
    """Files of one tree. `problems` and `warnings` are of all that has been read so far."""

    def __init__(self, tree: TemplateTree, validate: Validate) -> None:
        self.tree = tree
        self._validate = validate
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def files(self, folder: str) -> list[str]:
        return [path for path in sorted(self.tree) if path.startswith(f"{folder}/") and path.endswith(".yaml")]

    def document(self, path: str, of: DocumentType) -> Document | None:
        """The one document of a file; None where something is wrong with it."""
        template = self.tree.get(path)
        if template is None:
            remedy = "put the file into the template tree"
            self.keep(problem("TemplateNotFound", f"file {path!r} not found in the template tree", remedy=remedy))
            return None
        try:
            read = _packaged if template.packaged else parse
            documents = read(template.text, template.shown)
        except Problems as error:
            self.keep(error)
            return None
        if len(documents) != 1:
            message = f"holds {len(documents) or 'no'} documents, expected one"
            remedy = "give each document its own file" if documents else "fill it, or remove it"
            self.keep(problem("InvalidYAML", message, file=template.shown, remedy=remedy))
            return None
        return documents[0] if template.packaged else self._of_overlay(documents[0], of)

    def read(self, document: Document, read: Callable[[], T], otherwise: T) -> T:
        """The result of `read`, or `otherwise` where that is a `ValueError`."""
        try:
            return read()
        except ValueError as error:
            remedy = "write it as the packaged files do"
            line = document.line_with(error.text) if isinstance(error, _WITH_TEXT) else None
            self.keep(problem("InvalidDeclaration", str(error), file=document.file, line=line, remedy=remedy))
            return otherwise

    def keep(self, error: Problems) -> None:
        self.problems += error.problems

    def _of_overlay(self, document: Document, of: DocumentType) -> Document | None:
        """The document in its present form, if it fits its schema."""
        found = current(document, of)
        self.warnings += found.warnings
        wrong = [*found.problems, *self._validate(found.document, of)]
        self.problems += wrong
        return None if wrong else found.document


@cache
def _packaged(text: str, file: str) -> tuple[Document, ...]:
    """The documents of a packaged file, which stays the same while a process runs and is read for each of its trees."""
    return parse(text, file)
