"""Loads the template tree into a catalog: kinds, node states, values, rules of diffs, phases in order of their numbers.

Packaged files are proven by the tests; files of an overlay are checked against their schemas each time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any

from renderer.catalog.declare import phase_from
from renderer.catalog.file_reader import FileReader, Validate
from renderer.catalog.kinds import KindRow, Kinds, duplicate_kinds, rows_from
from renderer.catalog.node_states import duplicate_states, node_states_from
from renderer.catalog.places import DELIVERY_RULES as DELIVERY_RULES_FILE
from renderer.catalog.places import PHASE_FILE, VALUES_FILE, own_knowledge, unused
from renderer.catalog.template_tree import TemplateTree
from renderer.catalog.verify import verify_phases
from renderer.deprecated import redact_of_diffs
from renderer.errors import Problem, Problems, problem
from renderer.frozen import frozen
from renderer.model.document_type import (
    DELIVERY_RULES,
    DIFF_RULES,
    KINDS,
    NODE_STATES,
    PHASE,
    REDACTION_RULES,
    VALUES,
    DocumentType,
)
from renderer.model.node_state import NodeState, NodeStates
from renderer.model.phase import Deletion, Phase
from renderer.redaction import RedactionRules, packaged_list, packaged_rules, redaction_rules, rules_of_overlay
from renderer.yaml_io import Document

_HEADER = ("apiVersion", "kind")
_PHASE_FOLDER = re.compile(r"(\d\d)-[a-z0-9]+(-[a-z0-9]+)*")


@frozen
class Declared:
    """A phase with the document that declares it. Of a `held` one nothing may be applied from outside: it is the first
    one in which the plan may not be deleted, or comes after it, and only the loop knows when its turn comes."""

    phase: Phase
    document: Document
    held: bool = False

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
    reader = FileReader(tree, validate)
    catalog = _CatalogReader(tree, reader)
    kinds = Kinds(row for path in reader.files("_kinds") for row in catalog.kind_rows(path))
    node_states = NodeStates(row for path in reader.files("_node-states") for row in catalog.node_states(path))
    values, diff_rules, redaction = catalog.values(), catalog.diff_rules(), catalog.redaction()
    found = (catalog.declared(path) for path in sorted(tree) if path.endswith(f"/{PHASE_FILE}"))
    phases = _in_order(item for item in found if item)
    reader.problems += unused(tree)
    reader.problems += verify_phases([(item.phase, item.document) for item in phases], tree, node_states)
    if not all(file.packaged for file in tree.values()):
        from renderer.catalog.step_rules import unknown_values, without_effect

        reader.problems += [wrong for item in phases for wrong in without_effect(item.phase, item.document, kinds)]
        own = [item for item in phases if not tree[f"{item.phase.folder}/{PHASE_FILE}"].packaged]
        reader.problems += [wrong for item in own for wrong in unknown_values(item.phase, item.document, values)]
    if own_knowledge(tree):
        _judge_overlay(reader, kinds, [item.phase.name for item in phases])
    if reader.problems:
        raise Problems(reader.problems, warnings=reader.warnings)
    phases = [_with_values(item, values) for item in phases]
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


def _in_order(found: Iterable[Declared]) -> list[Declared]:
    phases = sorted(found, key=lambda item: (item.phase.number, item.phase.folder))
    free = [*takewhile(lambda item: item.phase.deletion is not Deletion.FORBIDDEN, phases)]
    return [*free, *(replace(item, held=True) for item in phases[len(free) :])]


def _with_values(declared: Declared, values: Mapping[str, Any]) -> Declared:
    """The phase without the steps whose value is not set."""
    phase = declared.phase
    steps = tuple(step for step in phase.steps if step.with_value is None or values.get(step.with_value))
    return declared if len(steps) == len(phase.steps) else replace(declared, phase=replace(phase, steps=steps))


def _judge_overlay(reader: FileReader, kinds: Kinds, phases: Iterable[str]) -> None:
    """Reads what a rendering does not need: checks, what is known about releases, known causes, rules of deliveries."""
    from renderer.catalog.built_in_upgrade import read_built_in_upgrade
    from renderer.catalog.cause_rules import CauseWorld
    from renderer.catalog.causes import read_causes
    from renderer.catalog.checks import read_checks
    from renderer.catalog.releases import read_releases

    if DELIVERY_RULES_FILE in own_knowledge(reader.tree):
        reader.document(DELIVERY_RULES_FILE, DELIVERY_RULES)
    checks = tuple(item.check.id for item in read_checks(reader, kinds))
    read_releases(reader, set(checks))
    read_built_in_upgrade(reader)
    read_causes(reader, CauseWorld(kinds=kinds, phases=tuple(phases), checks=checks))


def redaction_of(tree: TemplateTree, validate: Validate) -> RedactionRules:
    """Reads what is secret by the tree's own lists, before anything else of it. A list that is wrong is left out
    here, and reported when the tree is loaded."""
    return _CatalogReader(tree, FileReader(tree, validate)).redaction()


class _CatalogReader:
    """Reads one file after the other; what is wrong is kept by the `FileReader`."""

    def __init__(self, tree: TemplateTree, reader: FileReader) -> None:
        self._tree = tree
        self._reader = reader
        self._kinds: dict[tuple[str, str], Document] = {}
        self._states: dict[str, Document] = {}
        self._added_redaction: list[Mapping[str, Any]] = []

    def kind_rows(self, path: str) -> list[KindRow]:
        document = self._reader.document(path, KINDS)
        if document is None:
            return []
        none: list[KindRow] = []
        rows = self._reader.read(document, lambda: list(rows_from(document.value)), none)
        self._reader.problems += duplicate_kinds(document, rows, self._kinds)
        self._kinds |= {(row.kind.api_version, row.kind.kind): document for row in rows}
        return rows

    def node_states(self, path: str) -> list[NodeState]:
        document = self._reader.document(path, NODE_STATES)
        if document is None:
            return []
        self._reader.problems += duplicate_states(document, self._states)
        found = list(node_states_from(document.value))
        self._states |= {state.name: document for state in found}
        return found

    def values(self) -> Mapping[str, Any]:
        document = self._reader.document(VALUES_FILE, VALUES)
        return {key: item for key, item in document.value.items() if key not in _HEADER} if document else {}

    def diff_rules(self) -> Mapping[str, Any]:
        documents = [
            document for path in self._reader.files("_diff") if (document := self._reader.document(path, DIFF_RULES))
        ]
        old = [document for document in documents if "redact" in document.value]
        self._added_redaction += [redact_of_diffs(document, self._reader.warnings) for document in old]
        return {"mask": [rule for document in documents for rule in document.value.get("mask", ())]}

    def redaction(self) -> RedactionRules:
        """The packaged list, and what the files of overlays add to it."""
        files = [path for path in self._reader.files("_redaction") if not self._tree[path].packaged]
        documents = self._documents(files, REDACTION_RULES)
        for document in documents:
            if self._reader.read(document, partial(rules_of_overlay, document.value), None):
                self._added_redaction.append(document.value)
        added = self._added_redaction
        return redaction_rules([packaged_list(), *added]) if added else packaged_rules()

    def _documents(self, paths: Iterable[str], of: DocumentType) -> list[Document]:
        return [document for path in paths if (document := self._reader.document(path, of))]

    def declared(self, path: str) -> Declared | None:
        folder, _, _ = path.rpartition("/")
        if not _PHASE_FOLDER.fullmatch(folder):
            self._reader.keep(
                problem(
                    "PhaseFolder",
                    f"{folder!r} is not a phase folder",
                    file=self._tree[path].shown,
                    remedy="name it by two digits and words in lower case, such as 15-pre-check",
                )
            )
            return None
        document = self._reader.document(path, PHASE)
        if document is None:
            return None
        phase = self._reader.read(
            document, lambda: phase_from(document.value, number=int(folder[:2]), folder=folder), None
        )
        return Declared(phase=phase, document=document) if phase else None
