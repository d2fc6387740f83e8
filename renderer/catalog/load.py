"""Loads the template tree into a catalog: kinds, node states, values, rules of diffs, phases in order of their numbers.

Packaged files are proven by the tests; files of an overlay are checked against their schemas each time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from renderer.catalog.declare import phase_from
from renderer.catalog.kinds import KindRow, Kinds, rows_from
from renderer.catalog.node_states import duplicate_states, node_states_from
from renderer.catalog.places import PHASE_FILE, VALUES_FILE, unused
from renderer.catalog.probes import UnreadableAmount
from renderer.catalog.template_tree import TemplateTree
from renderer.catalog.verify import verify_phases
from renderer.deprecated import current, redact_of_diffs
from renderer.errors import Problem, Problems, problem
from renderer.frozen import frozen
from renderer.model.document_type import DIFF_RULES, KINDS, NODE_STATES, PHASE, REDACTION_RULES, VALUES, DocumentType
from renderer.model.node_state import NodeState, NodeStates
from renderer.model.path import UnreadablePath
from renderer.model.phase import Phase
from renderer.patterns import UnusablePattern
from renderer.redaction import RedactionRules, packaged_list, packaged_rules, redaction_rules, rules_of_overlay
from renderer.yaml_io import Document, parse

_HEADER = ("apiVersion", "kind")
_WITH_TEXT = (UnreadablePath, UnreadableAmount, UnusablePattern)
"""Errors that know the text that is wrong, and so its line."""
_PHASE_FOLDER = re.compile(r"(\d\d)-[a-z0-9]+(-[a-z0-9]+)*")

Validate = Callable[[Document, DocumentType], list[Problem]]
"""Checks a document against the schema of its type."""


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
    """The declarations of a template tree, phases in the order in which they run.

    `diff_rules` are the rules of all files together, `redaction` those of the packaged list and of all files.
    `warnings` name what is deprecated.
    """

    kinds: Kinds
    node_states: NodeStates
    values: Mapping[str, Any]
    diff_rules: Mapping[str, Any]
    redaction: RedactionRules
    phases: tuple[Declared, ...]
    tree: TemplateTree
    warnings: tuple[Problem, ...] = ()


def load_catalog(tree: TemplateTree, validate: Validate) -> Catalog:
    """Raises `Problems` with everything that is wrong in the tree."""
    reader = _CatalogReader(tree, validate)
    kinds = Kinds(row for path in reader.files("_kinds") for row in reader.kind_rows(path))
    node_states = NodeStates(row for path in reader.files("_node-states") for row in reader.node_states(path))
    values, diff_rules, redaction = reader.values(), reader.diff_rules(), reader.redaction()
    found = (reader.declared(path) for path in sorted(tree) if path.endswith(f"/{PHASE_FILE}"))
    phases = sorted((item for item in found if item), key=lambda item: (item.phase.number, item.phase.folder))
    reader.problems += unused(tree)
    reader.problems += verify_phases([(item.phase, item.document) for item in phases], tree, node_states)
    if reader.problems:
        raise Problems(reader.problems, warnings=reader.warnings)
    return Catalog(
        kinds=kinds,
        node_states=node_states,
        values=values,
        diff_rules=diff_rules,
        redaction=redaction,
        phases=tuple(phases),
        tree=tree,
        warnings=tuple(reader.warnings),
    )


class _CatalogReader:
    """Reads one file after the other and collects what is wrong, so that one run reports all of it."""

    def __init__(self, tree: TemplateTree, validate: Validate) -> None:
        self._tree = tree
        self._validate = validate
        self._states: dict[str, Document] = {}
        self._added_redaction: list[Mapping[str, Any]] = []
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def files(self, folder: str) -> list[str]:
        return [path for path in sorted(self._tree) if path.startswith(f"{folder}/") and path.endswith(".yaml")]

    def kind_rows(self, path: str) -> list[KindRow]:
        document = self._document(path, KINDS)
        return self._read(document, lambda: list(rows_from(document.value)), []) if document else []

    def node_states(self, path: str) -> list[NodeState]:
        document = self._document(path, NODE_STATES)
        if document is None:
            return []
        self.problems += duplicate_states(document, self._states)
        found = list(node_states_from(document.value))
        self._states |= {state.name: document for state in found}
        return found

    def values(self) -> Mapping[str, Any]:
        document = self._document(VALUES_FILE, VALUES)
        return {key: item for key, item in document.value.items() if key not in _HEADER} if document else {}

    def diff_rules(self) -> Mapping[str, Any]:
        documents = [document for path in self.files("_diff") if (document := self._document(path, DIFF_RULES))]
        old = [document for document in documents if "redact" in document.value]
        self._added_redaction += [redact_of_diffs(document, self.warnings) for document in old]
        return {"mask": [rule for document in documents for rule in document.value.get("mask", ())]}

    def redaction(self) -> RedactionRules:
        """The packaged list, and what the files of overlays add to it."""
        files = [path for path in self.files("_redaction") if not self._tree[path].packaged]
        documents = [document for path in files if (document := self._document(path, REDACTION_RULES))]
        for document in documents:
            if self._read(document, partial(rules_of_overlay, document.value), None):
                self._added_redaction.append(document.value)
        added = self._added_redaction
        return redaction_rules([packaged_list(), *added]) if added else packaged_rules()

    def declared(self, path: str) -> Declared | None:
        folder, _, _ = path.rpartition("/")
        if not _PHASE_FOLDER.fullmatch(folder):
            self._keep(
                problem(
                    "PhaseFolder",
                    f"{folder!r} is not a phase folder",
                    file=self._tree[path].shown,
                    remedy="name it by two digits and words in lower case, such as 15-pre-check",
                )
            )
            return None
        document = self._document(path, PHASE)
        if document is None:
            return None
        phase = self._read(document, lambda: phase_from(document.value, number=int(folder[:2]), folder=folder), None)
        return Declared(phase=phase, document=document) if phase else None

    def _document(self, path: str, of: DocumentType) -> Document | None:
        template = self._tree.get(path)
        if template is None:
            remedy = "put the file into the template tree"
            self._keep(problem("TemplateNotFound", f"file {path!r} not found in the template tree", remedy=remedy))
            return None
        try:
            documents = parse(template.text, template.shown)
        except Problems as error:
            self._keep(error)
            return None
        if len(documents) != 1:
            message = f"holds {len(documents) or 'no'} documents, expected one"
            remedy = "give each document its own file" if documents else "fill it, or remove it"
            self._keep(problem("InvalidYAML", message, file=template.shown, remedy=remedy))
            return None
        return documents[0] if template.packaged else self._of_overlay(documents[0], of)

    def _of_overlay(self, document: Document, of: DocumentType) -> Document | None:
        """The document in its present form, if it fits its schema."""
        found = current(document, of)
        self.warnings += found.warnings
        wrong = [*found.problems, *self._validate(found.document, of)]
        self.problems += wrong
        return None if wrong else found.document

    def _read(self, document: Document, read: Callable[[], Any], otherwise: Any) -> Any:
        try:
            return read()
        except ValueError as error:
            remedy = "write it as the packaged files do"
            line = document.line_with(error.text) if isinstance(error, _WITH_TEXT) else None
            self._keep(problem("InvalidDeclaration", str(error), file=document.file, line=line, remedy=remedy))
            return otherwise

    def _keep(self, error: Problems) -> None:
        self.problems += error.problems
