"""Reads the document of a gate: resolved probes, the rules of the kinds that they look at, and checks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from renderer.catalog.kinds import Kinds, rows_from
from renderer.catalog.probes import gate_from
from renderer.errors import Problems, problem
from renderer.model.document_type import GATE
from renderer.model.probe import Gate
from renderer.validation import document_problems
from renderer.yaml_io import parse


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGate:
    """A gate, and the step that it ends, as Phase/Step."""

    step: str
    gate: Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """Checks that must not block: their time, the plan and the release that they are about, and their files by path."""

    when: str
    plan: Mapping[str, Any]
    release: Mapping[str, Any] | None
    files: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateDocument:
    """The document `Gate`; its keys are described in schemas/resolved-gate.json."""

    plan: str
    name: str
    digest: str
    gates: tuple[StepGate, ...]
    kinds: Kinds
    checks: CheckRun | None


def read_gate(text: str, file: str) -> GateDocument:
    """Raises `Problems` if it is not such a document."""
    documents = parse(text, file)
    if len(documents) != 1 or not GATE.is_type_of(documents[0].value):
        raise problem("NotAGate", f"{file} is not one document of kind Gate", remedy="give the file gate.yaml")
    if found := document_problems(documents[0], GATE):
        raise Problems(found)
    raw = documents[0].value
    return GateDocument(
        plan=raw["plan"],
        name=raw["name"],
        digest=raw["digest"],
        gates=tuple(StepGate(step=item["step"], gate=gate_from(item)) for item in raw["gates"]),
        kinds=Kinds(rows_from(raw)),
        checks=_checks(raw.get("checks")),
    )


def _checks(raw: Mapping[str, Any] | None) -> CheckRun | None:
    if raw is None:
        return None
    return CheckRun(when=raw["when"], plan=raw["upgradePlan"], release=raw.get("release"), files=raw["files"])
