"""The paths that a diff leaves out: rules as data, `_diff/rules.yaml` of the template tree. Pure.

What it hides is what everything hides: `templates/_redaction`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from renderer.model.path import ABSENT
from renderer.model.path_rule import PathRule, edited, path_rule
from renderer.model.ref import Body
from renderer.redaction import RedactionRules


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRules:
    """`masked` paths are server-set noise and left out; what `redaction` names is shown as marks."""

    masked: tuple[PathRule, ...]
    redaction: RedactionRules


def rules_from(raw: Mapping[str, Any], redaction: RedactionRules) -> DiffRules:
    """The rules of one document that has passed `schemas/diff-rules.json`. Raises ValueError for an unreadable path."""
    return DiffRules(masked=tuple(map(path_rule, raw.get("mask", ()))), redaction=redaction)


def masked(body: Body, rules: DiffRules) -> Body:
    """The object without what the rules leave out, and without annotations that repeat whole objects."""
    for rule in rules.masked:
        for path in rule.paths if rule.applies_to(body) else ():
            body = edited(body, path, lambda where, value: ABSENT)
    for name in rules.redaction.copies_in(body):
        body = edited(body, ("metadata", "annotations", name), lambda where, value: ABSENT)
    return body
