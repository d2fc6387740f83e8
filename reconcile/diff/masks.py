"""The paths that a diff leaves out or hides: rules as data, `_diff/rules.yaml` of the template tree. Pure.

A rule's path is written as everywhere; the step `["*"]` stands for every key or item at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.objects import COPIES
from renderer.model.path import ABSENT, Path, parse_path
from renderer.model.ref import Body

EVERY = "*"

_COPIES: tuple[Path, ...] = tuple(("metadata", "annotations", name) for name in COPIES)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRule:
    """Paths of some kinds, of all kinds if none are named."""

    kinds: tuple[tuple[str, str], ...]
    paths: tuple[Path, ...]

    def applies_to(self, body: Body) -> bool:
        return not self.kinds or (str(body.get("apiVersion")), str(body.get("kind"))) in self.kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRules:
    """`masked` paths are server-set noise and left out; `secret` ones are shown as marks."""

    masked: tuple[DiffRule, ...]
    secret: tuple[DiffRule, ...]


def rules_from(raw: Mapping[str, Any]) -> DiffRules:
    """The rules of one document that has passed `schemas/diff-rules.json`. Raises ValueError for an unreadable path.

    Copies of objects in annotations are left out of every kind, and are secret in each kind that has secrets.
    """
    return DiffRules(
        masked=(DiffRule(kinds=(), paths=_COPIES), *(_rule(item) for item in raw.get("mask", ()))),
        secret=tuple(_rule(item, _COPIES) for item in raw.get("redact", ())),
    )


def paths_for(rules: Iterable[DiffRule], body: Body) -> tuple[Path, ...]:
    """All paths that the rules name for an object."""
    return tuple(path for rule in rules if rule.applies_to(body) for path in rule.paths)


def masked(body: Body, rules: DiffRules) -> Body:
    """The object without what the rules leave out."""
    for path in paths_for(rules.masked, body):
        body = edited(body, path, lambda where, value: ABSENT)
    return body


def edited(value: Any, path: Path, edit: Callable[[Path, Any], Any], here: Path = ()) -> Any:
    """A copy in which `edit` has replaced every value at a rule's path; ABSENT removes it, and a mapping that loses
    its last member goes too. `edit` is told where."""
    if not path:
        return edit(here, value)
    step, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        keys = [key for key in value if step in (EVERY, key)]
        if not keys:
            return value
        changed = {key: edited(value[key], rest, edit, (*here, key)) for key in keys}
        left = {key: item for key, item in (dict(value) | changed).items() if item is not ABSENT}
        return left or ABSENT
    if isinstance(value, list | tuple):
        items = (
            edited(item, rest, edit, (*here, index)) if step in (EVERY, index) else item
            for index, item in enumerate(value)
        )
        return [item for item in items if item is not ABSENT]
    return value


def matches(rule: Path, path: Path) -> bool:
    """True if a rule's path is this one or a parent of it."""
    return len(rule) <= len(path) and all(step in (EVERY, found) for step, found in zip(rule, path, strict=False))


def _rule(item: Mapping[str, Any], more: tuple[Path, ...] = ()) -> DiffRule:
    return DiffRule(
        kinds=tuple((kind["apiVersion"], kind["kind"]) for kind in item.get("kinds", ())),
        paths=(*(parse_path(path) for path in item["paths"]), *more),
    )
