"""Rules for pre-flight checks that a schema cannot express: kinds, rules of the probe language, overrides."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from renderer.catalog.kinds import ALWAYS_CHECKED, Kinds
from renderer.catalog.named_kinds import Named, named_in_probe, wrong_kind
from renderer.catalog.plan_fields import is_spec_field, may_be
from renderer.catalog.rules import misused
from renderer.errors import Problem
from renderer.model.check import AnnotationOverride, CheckTime, FieldOverride
from renderer.model.path import Path, parse_path, path_name, starts_with
from renderer.model.plan_api import PREFIX
from renderer.model.probe import (
    Captured,
    EveryTarget,
    FieldOf,
    FieldPredicate,
    ManifestTarget,
    Predicate,
    RulePredicate,
)
from renderer.resources import packaged
from renderer.suggest import did_you_mean
from renderer.yaml_io import parse

if TYPE_CHECKING:
    from renderer.catalog.checks import DeclaredCheck


_OF_OBJECT = re.compile(r"""\bobject\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*|\['[^'"]+'\]|\["[^'"]+"\])*)""")
"""A field of the object, in a text with marks."""


def wrong_with(declared: DeclaredCheck, kinds: Kinds) -> Iterator[Problem]:
    """Everything that is wrong with one check."""
    check = declared.check
    if not check.remedy.strip():
        yield declared.problem("NoRemedy", f"check {check.id} has no remedy", "say what to do", "remedy")
    if check.per_node and check.when != (CheckTime.BEFORE_NODE,):
        message = f"check {check.id} uses `node`, which only a check of beforeNode has"
        yield declared.problem("UndefinedVariable", message, "write when: [beforeNode]", "when")
    yield from _target(declared, kinds)
    yield from _not_kept(declared, kinds)
    yield from _override(declared)


def _target(declared: DeclaredCheck, kinds: Kinds) -> Iterator[Problem]:
    probe = declared.check.probe
    if isinstance(probe.target, ManifestTarget):
        message = f"check {declared.check.id} looks at a manifest, and a check has none"
        yield declared.problem("InvalidProbe", message, "name an object, or every object of a kind", "probe")
        return
    named = named_in_probe(probe)
    if named and (found := wrong_kind(named, kinds)):
        message = f"check {declared.check.id}: {found.message}"
        yield declared.problem(found.reason, message, found.remedy, "probe")
    where = probe.target.where if isinstance(probe.target, EveryTarget) else ()
    for predicate in (*where, *probe.all, *probe.fails):
        if wrong := _wrong_predicate(predicate, named.kind if named else ""):
            reason, message, remedy = wrong
            yield declared.problem(reason, f"check {declared.check.id}: {message}", remedy, "probe")


def _not_kept(declared: DeclaredCheck, kinds: Kinds) -> Iterator[Problem]:
    """The fields of a kind with many objects that lists for checks do not keep."""
    named = named_in_probe(declared.check.probe)
    row = kinds.find(named.api_version, named.kind) if named else None
    if named is None or row is None or row.checked is None:
        return
    kept = (*ALWAYS_CHECKED, *row.checked)
    for path in dict.fromkeys(_read(declared, named)):
        if not any(starts_with(path, known) or starts_with(known, path) for known in kept):
            message = (
                f"check {declared.check.id} reads {path_name(path)} of {named.kind}, which lists for checks do not keep"
            )
            remedy = "add the path to `checked` of the kind's row, in a copy of its file in _kinds/"
            yield declared.problem("FieldNotKept", message, remedy, "probe")


def _read(declared: DeclaredCheck, named: Named) -> Iterator[Path]:
    """The paths of fields that a check names in its probe and in its texts, without places in lists."""
    check = declared.check
    for predicate in (*named.all, *check.probe.fails):
        if isinstance(predicate, FieldPredicate):
            yield _without_places(predicate.path)
            if isinstance(predicate.operand, FieldOf):
                yield _without_places(predicate.operand.path)
    says = check.passes_when.says if check.passes_when else None
    for text in filter(None, (check.offender, check.says, says, check.remedy)):
        yield from (parse_path(found.replace("'", '"')) for found in _OF_OBJECT.findall(text))


def _without_places(path: Path) -> Path:
    return tuple(step for step in path if not isinstance(step, int))


def _wrong_predicate(predicate: Predicate, kind: str) -> tuple[str, str, str] | None:
    """Reason, message and remedy."""
    if isinstance(predicate, RulePredicate):
        wrong = misused(predicate.name, dict(predicate.arguments), kind)
        return ("InvalidRule", wrong, "correct the rule's name or arguments") if wrong else None
    if not kind:
        return "InvalidProbe", "only a rule can be about the cluster as a whole", "name an object, or use a rule"
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
        case FieldOverride(path=path) if not is_spec_field(path):
            message = f"override: an UpgradePlan has no field {path_name(path)}"
            yield declared.problem("UnknownField", message, "name a field of its spec", "override", "field")
        case FieldOverride(path=path, equals=value) if not may_be(path, value):
            message = f"override: {path_name(path)} of an UpgradePlan is never {value!r}"
            yield declared.problem("WrongType", message, "write a value of the field's type", "override", "equals")


@lru_cache(maxsize=1)
def _annotations() -> frozenset[str]:
    """Every annotation of a plan that this program reads or writes."""
    text = packaged("schemas").joinpath("reference", "annotations.yaml").read_text(encoding="utf-8")
    listed = parse(text, "annotations.yaml")[0].value["annotations"]
    return frozenset(item["key"] for item in listed if item["object"].startswith("UpgradePlan"))
