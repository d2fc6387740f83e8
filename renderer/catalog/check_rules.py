"""Rules for pre-flight checks that a schema cannot express: kinds, rules of the probe language, overrides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from renderer.catalog.kinds import Kinds
from renderer.catalog.rules import misused
from renderer.errors import Problem
from renderer.model.check import AnnotationOverride, CheckTime, FieldOverride
from renderer.model.path import path_name
from renderer.model.plan_api import PREFIX
from renderer.model.probe import (
    BuiltinPredicate,
    Captured,
    ClusterTarget,
    EveryTarget,
    FieldPredicate,
    ManifestTarget,
    ObjectTarget,
    Predicate,
    RulePredicate,
)
from renderer.resources import packaged
from renderer.suggest import did_you_mean
from renderer.validation import load
from renderer.yaml_io import parse

if TYPE_CHECKING:
    from renderer.catalog.checks import DeclaredCheck

_ADD_KIND = "add a row for it to a file in _kinds/ of the template tree"


def wrong_with(declared: DeclaredCheck, kinds: Kinds) -> Iterator[Problem]:
    """Everything that is wrong with one check."""
    check = declared.check
    if not check.remedy.strip():
        yield declared.problem("NoRemedy", f"check {check.id} has no remedy", "say what to do", "remedy")
    if check.per_node and check.when != (CheckTime.BEFORE_NODE,):
        message = f"check {check.id} speaks of `node`, which only a check of beforeNode has"
        yield declared.problem("UndefinedVariable", message, "write when: [beforeNode]", "when")
    yield from _target(declared, kinds)
    yield from _override(declared)


def _target(declared: DeclaredCheck, kinds: Kinds) -> Iterator[Problem]:
    probe = declared.check.probe
    match probe.target:
        case ManifestTarget():
            message = f"check {declared.check.id} looks at a manifest, and a check has none"
            yield declared.problem("InvalidProbe", message, "name an object, or every object of a kind", "probe")
            return
        case ObjectTarget(ref=ref):
            api_version, kind = ref.api_version, ref.kind
        case EveryTarget():
            api_version, kind = probe.target.api_version, probe.target.kind
        case ClusterTarget():
            api_version, kind = "", ""
    row = kinds.find(api_version, kind) if kind else None
    if kind and row is None:
        message = f"{api_version} {kind} is not in the kinds table"
        yield declared.problem("UnknownKind", message, _ADD_KIND, "probe")
    where = probe.target.where if isinstance(probe.target, EveryTarget) else ()
    for predicate in (*where, *probe.all, *probe.fails):
        if wrong := _wrong_predicate(predicate, kind, row is not None and row.ready is not None):
            reason, message, remedy = wrong
            yield declared.problem(reason, f"check {declared.check.id}: {message}", remedy, "probe")


def _wrong_predicate(predicate: Predicate, kind: str, has_rule: bool) -> tuple[str, str, str] | None:
    """Reason, message and remedy."""
    if isinstance(predicate, RulePredicate):
        wrong = misused(predicate.name, dict(predicate.arguments), kind)
        return ("InvalidRule", wrong, "correct the rule's name or arguments") if wrong else None
    if not kind:
        return "InvalidProbe", "only a rule is about the cluster as a whole", "name an object, or use a rule"
    if isinstance(predicate, BuiltinPredicate) and not has_rule:
        return (
            "NoRule",
            f"{kind} has no readiness rule",
            "add `ready` to its row in _kinds/, or state the expected condition",
        )
    if isinstance(predicate, FieldPredicate) and isinstance(predicate.operand, Captured):
        return "UnknownCapture", "compares with a captured value, and a check captures none", "compare with a field"
    return None


def _override(declared: DeclaredCheck) -> Iterator[Problem]:
    match declared.check.override:
        case AnnotationOverride(key=key) if f"{PREFIX}{key}" not in _annotations():
            known = [name.removeprefix(PREFIX) for name in _annotations() if name.startswith(PREFIX)]
            message = f"override: nothing reads the annotation {PREFIX}{key}{did_you_mean(key, known)}"
            remedy = "name an annotation of the plan, or leave override out: the id in accept-risk accepts then"
            yield declared.problem("UnknownAnnotation", message, remedy, "override", "annotation")
        case FieldOverride(path=path) if not _is_plan_field(path):
            message = f"override: an UpgradePlan has no field {path_name(path)}"
            yield declared.problem("UnknownField", message, "name a field of its spec", "override", "field")


@lru_cache(maxsize=1)
def _annotations() -> frozenset[str]:
    """Every annotation of a plan that this program reads or writes."""
    text = packaged("schemas").joinpath("reference", "annotations.yaml").read_text(encoding="utf-8")
    listed = parse(text, "annotations.yaml")[0].value["annotations"]
    return frozenset(item["key"] for item in listed if item["object"].startswith("UpgradePlan"))


def _is_plan_field(path: tuple[str | int, ...]) -> bool:
    if path[0] != "spec" or len(path) < 2:
        return False
    schema: Mapping[str, Any] = load("built/upgradeplan.json")
    for step in path:
        schema = schema.get("properties", {}).get(step)
        if schema is None:
            return False
    return True
