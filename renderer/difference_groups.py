"""Differences as people read them: those that are the same for several nodes are one. Of models (schemas/compare.json);
pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Model = Mapping[str, Any]

_SHOWN = 3
"""Fields of a difference that are named."""


def grouped(differences: Iterable[Model]) -> list[list[Model]]:
    """Groups differences that are the same for several nodes."""
    groups: dict[tuple[str, ...], list[Model]] = {}
    for number, item in enumerate(differences):
        lines = [line for line in item.get("diff", "").splitlines()[2:] if line[0] in "+-"]
        same = (item["operation"], item["phase"], item.get("step", ""), item.get("template", ""), *lines)
        groups.setdefault(same if item.get("node") else (str(number),), []).append(item)
    return list(groups.values())


def name_of(group: list[Model]) -> str:
    """The object, phase or step, and of how many more nodes."""
    first = group[0]
    what = first["name"] if first["subject"] == "manifest" else f"{first['subject']} {first['name']}"
    return f"{what} (and {len(group) - 1} more nodes)" if len(group) > 1 else str(what)


def fields_of(group: list[Model]) -> str:
    fields = group[0].get("fields", ())
    more = f" and {len(fields) - _SHOWN} more" if len(fields) > _SHOWN else ""
    return ", ".join(fields[:_SHOWN]) + more


def other_images(before: Sequence[str], after: Sequence[str]) -> dict[str, list[str]]:
    """The images that only one of two renderings uses."""
    return {
        "added": [image for image in after if image not in before],
        "removed": [image for image in before if image not in after],
    }
