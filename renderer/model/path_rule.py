"""Rules about paths of kinds, as template trees write them. The step `["*"]` stands for every key or item."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from renderer.frozen import frozen
from renderer.model.path import ABSENT, Path, parse_path
from renderer.model.ref import Body

EVERY = "*"


@frozen
class PathRule:
    """Paths of some kinds, of all kinds if none are named."""

    kinds: tuple[tuple[str, str], ...]
    paths: tuple[Path, ...]

    def applies_to(self, body: Body) -> bool:
        return not self.kinds or (str(body.get("apiVersion")), str(body.get("kind"))) in self.kinds


def path_rule(item: Mapping[str, Any]) -> PathRule:
    """One rule as a document has it. Raises ValueError for an unreadable path."""
    return PathRule(
        kinds=tuple((kind["apiVersion"], kind["kind"]) for kind in item.get("kinds", ())),
        paths=tuple(map(parse_path, item["paths"])),
    )


def edited(value: Any, path: Path, edit: Callable[[Path, Any], Any], here: Path = ()) -> Any:
    """A copy in which `edit` has replaced every value at a rule's path; ABSENT removes it, and a mapping that loses
    its last member goes too. `edit` is given the place."""
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
