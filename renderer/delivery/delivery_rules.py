"""`delivery/rules.yaml` of a template tree as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from renderer.catalog.file_reader import FileReader, Validate
from renderer.catalog.places import DELIVERY_RULES as FILE
from renderer.catalog.template_tree import TemplateTree
from renderer.delivery.agent_marks import AgentMarks
from renderer.errors import Problems
from renderer.frozen import frozen
from renderer.model.document_type import DELIVERY_RULES
from renderer.model.path import look_up, parse_path
from renderer.yaml_io import Document

Pair = tuple[str, str]
"""API version and kind."""


@frozen
class Dressing:
    """A part of an agent's copy of a manifest that the manifest does not have; with `of: definedKinds`, of those
    objects only whose kind the tree itself defines."""

    name: str
    description: str
    annotations: Mapping[str, str]
    file: str | None = None
    script: str | None = None
    of: str | None = None


@frozen
class PhaseRule:
    """The rule of one phase; `before` has gates as they are declared."""

    never: str | None = None
    on_request: str | None = None
    left_out: tuple[str, ...] = ()
    before: tuple[Mapping[str, Any], ...] = ()


@frozen
class Definitions:
    """Objects that define kinds: their own kind, and the paths of the group and the kind that each defines."""

    kind: Pair
    group: str
    defined: str

    def of(self, body: Mapping[str, Any]) -> Pair | None:
        """Group and kind that the object defines; None if it defines none."""
        if (body.get("apiVersion"), body.get("kind")) != self.kind:
            return None
        group, kind = (look_up(body, parse_path(path)) for path in (self.group, self.defined))
        return str(group), str(kind)


@frozen
class FolderRule:
    """A rule for a folder that agents pull. `beside` names the files that it may have beside its manifests, `largest`
    is its size in bytes after compression; with `apart`, what is defined is not beside its definition."""

    beside: tuple[str, ...] | None = None
    largest: int | None = None
    apart: bool = False


@frozen
class LintRule:
    """One rule of the linter; without `kinds` it is for every object that is delivered, with `folder` for folders."""

    id: str
    reason: str
    remedy: str
    kinds: frozenset[Pair] = frozenset()
    forbid: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    values: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    longest: Mapping[str, int] = field(default_factory=dict)
    largest: int | None = None
    keys: tuple[tuple[str, tuple[str, ...]], ...] = ()
    folder: FolderRule | None = None


@frozen
class DeliveryRules:
    """All rules of one tree. `document` is where they stand."""

    document: Document
    dressings: tuple[Dressing, ...]
    through: str
    timeout: int
    phases: Mapping[str, PhaseRule]
    judged: frozenset[Pair]
    reads: Mapping[str, tuple[Pair, ...]]
    marks: tuple[AgentMarks, ...]
    definitions: Definitions
    lint: tuple[LintRule, ...] = ()
    timed_pauses: tuple[str, ...] = ()
    after_plan: tuple[Mapping[str, Any], ...] = ()
    """Gates on the plan itself, as they are declared."""

    def of(self, phase: str) -> PhaseRule:
        return self.phases.get(phase, PhaseRule())

    @property
    def gate_file(self) -> str:
        """The name of a file that holds a gate and nothing else."""
        return next(dressing.file for dressing in self.dressings if dressing.file and not dressing.script)

    @property
    def script(self) -> str:
        """The script that keeps a Job from running twice; empty if there is none."""
        return next((dressing.script for dressing in self.dressings if dressing.script), "")

    @property
    def record_file(self) -> str:
        """The name of a file that holds the roles by which the script keeps its records; empty where there is none."""
        return next((dressing.file or "" for dressing in self.dressings if dressing.script), "")


def load_rules(tree: TemplateTree, validate: Validate) -> DeliveryRules:
    """Raises `Problems` for a file that cannot be read."""
    reader = FileReader(tree, validate)
    document = reader.document(FILE, DELIVERY_RULES)
    if document is None:
        raise Problems(reader.problems)
    raw = document.value
    return DeliveryRules(
        document=document,
        dressings=tuple(Dressing(**{"annotations": {}, **item}) for item in raw["dressings"]),
        definitions=_definitions(raw["definitions"]),
        through=raw["through"],
        timeout=raw["timeout"],
        phases={name: _phase(rule) for name, rule in raw["phases"].items()},
        judged=frozenset(_pairs(raw["judged"])),
        lint=tuple(map(_lint_rule, raw["lint"])),
        reads={name: _pairs(kinds) for name, kinds in raw["reads"].items()},
        marks=tuple(map(_marks, raw["marks"])),
        after_plan=tuple(raw.get("plan", {}).get("after", ())),
        timed_pauses=tuple(raw.get("timedPauses", ())),
    )


def _phase(raw: Mapping[str, Any]) -> PhaseRule:
    return PhaseRule(
        never=raw.get("never"),
        on_request=raw.get("onRequest"),
        left_out=tuple(raw.get("leaveOut", {}).get("steps", ())),
        before=tuple(raw.get("before", ())),
    )


def _lint_rule(raw: Mapping[str, Any]) -> LintRule:
    return LintRule(
        id=raw["id"],
        reason=raw["reason"],
        remedy=raw["remedy"],
        kinds=frozenset(_pairs(raw.get("kinds", []))),
        forbid=tuple(raw.get("forbid", ())),
        require=tuple(raw.get("require", ())),
        values={path: tuple(values) for path, values in raw.get("values", {}).items()},
        longest=raw.get("longest", {}),
        largest=raw.get("largest"),
        keys=tuple((item["path"], tuple(item["prefixes"])) for item in raw.get("keys", ())),
        folder=_folder_rule(raw["folder"]) if "folder" in raw else None,
    )


def _folder_rule(raw: Mapping[str, Any]) -> FolderRule:
    beside = tuple(raw["beside"]) if "beside" in raw else None
    return FolderRule(beside=beside, largest=raw.get("largest"), apart=raw.get("definitionsApart", False))


def _definitions(raw: Mapping[str, str]) -> Definitions:
    return Definitions(kind=(raw["apiVersion"], raw["kind"]), group=raw["group"], defined=raw["defines"])


def _marks(raw: Mapping[str, Any]) -> AgentMarks:
    return AgentMarks(
        agent=raw["agent"],
        annotations=tuple(raw.get("annotations", ())),
        labels=tuple(raw.get("labels", ())),
        managers=tuple(raw.get("managers", ())),
        weak_labels=tuple(raw.get("weakLabels", ())),
    )


def _pairs(raw: list[Mapping[str, str]]) -> tuple[Pair, ...]:
    return tuple((item["apiVersion"], item["kind"]) for item in raw)
