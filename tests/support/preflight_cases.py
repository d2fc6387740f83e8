"""Reads case files of pre-flight checks: `preflight/<check-id>/*.yaml` are what was given, and the answer.

The first document says what was given beside objects, and what is expected; the others are the objects.

    plan: {spec: {version: v1.8.0}}          # an UpgradePlan's parts; left out: none was given
    release: {harvester: v1.8.0}             # left out: none was given
    from: v1.7.1                             # the Setting server-version, if there is none among the objects
    collected: [Volume, {kind: Version, namespace: x}]   # kinds that were read completely, objects or not
    facts: {kubelet: {...}}                  # sections of a facts document
    now: 2026-11-02T08:00:00Z                # left out: this very time
    node: node-1                             # left out: a check that speaks of `node` runs for each
    when: [start]                            # left out: the check's own times
    expect:
      outcome: blocked
      findings: [{offender: ..., says: ..., remedy: ...}]   # all of them, in order; keys may be left out
      readFailures: [the words that say what was missing]
      accepted: annotation management.harvesterhci.io/accept-risk
      reason: ...
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from reconcile.preflight.check_context import check_context
from reconcile.preflight.check_result import CheckResult
from reconcile.preflight.checking import run_check
from reconcile.preflight.given_objects import GivenObjects
from reconcile.schemas import packaged_schemas
from renderer.assemble import TemplateSet, open_template_set
from renderer.catalog.checks import DeclaredCheck, load_checks
from renderer.model.check import CheckTime
from renderer.model.collected import CollectedKind
from renderer.model.document_type import FACTS
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body
from renderer.source_document import without_lines
from renderer.validation import document_problems
from renderer.yaml_io import parse
from support.rendered_plans import ROOT, templates

CASES = ROOT / "tests" / "preflight"
NOW = datetime(2026, 11, 2, 8, tzinfo=UTC)


@functools.cache
def template_set() -> TemplateSet:
    return open_template_set(templates())


@functools.cache
def checks() -> Mapping[str, DeclaredCheck]:
    kinds = template_set().catalog.kinds
    return {item.check.id: item for item in load_checks(templates(), document_problems, kinds)}


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightCase:
    """One file: `check` is the id that its folder is called by."""

    check: str
    head: Mapping[str, Any]
    bodies: tuple[Body, ...]

    @property
    def expected(self) -> Mapping[str, Any]:
        expected: Mapping[str, Any] = self.head["expect"]
        return expected


def paths() -> list[Path]:
    return sorted(CASES.glob("*/*.yaml"))


@functools.cache
def case(path: Path) -> PreflightCase:
    head, *bodies = (document.value for document in parse(path.read_text(encoding="utf-8"), path.name))
    return PreflightCase(check=path.parent.name, head=head, bodies=tuple(_objects(head, bodies)))


def _objects(head: Mapping[str, Any], bodies: list[Body]) -> Iterator[Body]:
    for body in bodies:
        yield from body["items"] if body["kind"] == "List" else [body]
    if "from" in head:
        metadata = {"name": "server-version"}
        yield {"apiVersion": "harvesterhci.io/v1beta1", "kind": "Setting", "metadata": metadata, "value": head["from"]}


def answer(
    case: PreflightCase, annotations: Mapping[str, str] | None = None, when: CheckTime | None = None
) -> CheckResult:
    """What the evaluator says; for a plan with these annotations more, at one time instead of the case's."""
    declared, head = checks()[case.check], case.head
    if annotations is not None:
        given = head.get("plan", {})
        metadata = given.get("metadata", {})
        more = {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}
        head = {**head, "plan": {**given, "metadata": more}}
    plan = _plan(head["plan"]) if "plan" in head else None
    if "facts" in head:
        document = without_lines(FACTS.document({"facts": head["facts"]}), "facts")
        assert document_problems(document, FACTS) == []
    look = GivenObjects(
        case.bodies,
        template_set().catalog.kinds,
        collected=[_collected(item) for item in head.get("collected", ())],
        facts=head.get("facts"),
        plan=plan,
    )
    context = check_context(
        template_set(),
        packaged_schemas(),
        datetime.fromisoformat(head["now"]) if "now" in head else NOW,
        plan=plan,
        release=head.get("release"),
        objects=case.bodies,
    )
    times = [when] if when else [CheckTime(item) for item in head.get("when", declared.check.when)]
    return run_check(declared, look, context, times, head.get("node"))


def _plan(parts: Mapping[str, Any]) -> Body:
    metadata = {"name": "hvst-upgrade", **parts.get("metadata", {})}
    return {"apiVersion": PLAN_API_VERSION, "kind": "UpgradePlan", "spec": {}, **parts, "metadata": metadata}


def _collected(item: Any) -> CollectedKind:
    """A kind by its name, which must be enough, or with more said about it."""
    said = {"kind": item} if isinstance(item, str) else item
    kinds = template_set().catalog.kinds
    versions = (
        [said["apiVersion"]]
        if "apiVersion" in said
        else sorted({row.versions[0] for row in kinds if row.kind.kind == said["kind"]})
    )
    assert len(versions) == 1, f"write {{apiVersion: ..., kind: {said['kind']}}}: {versions}"
    return CollectedKind(
        api_version=versions[0], kind=said["kind"], namespace=said.get("namespace", ""), name=said.get("name", "")
    )
