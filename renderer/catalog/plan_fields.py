"""The fields that an UpgradePlan has, by its definition: declarations name some of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from renderer.model.path import Path
from renderer.validation import load

_OF_THE_LOOP = frozenset(
    {
        "observedGeneration",
        "conditions",
        "currentPhase",
        "phaseTransitionTimestamps",
        "nodeUpgradeStatuses",
        "steps",
        "borrowed",
        "waitingSince",
        "digest",
    }
)
"""Fields of the status that the loop itself keeps."""

_TYPES: Mapping[str, type] = {"boolean": bool, "string": str, "integer": int}


def is_spec_field(path: Path) -> bool:
    return path[0] == "spec" and len(path) > 1 and _exists(path)


def may_be(path: Path, value: Any) -> bool:
    """True if a field of the plan may have this value, by its type."""
    expected = _TYPES.get(str(_schema_of(path).get("type")))
    return expected is None or type(value) is expected


def is_recordable(field: str) -> bool:
    """True for a field of the status that a step may record, by its dotted path."""
    path = ("status", *field.split("."))
    return path[1] not in _OF_THE_LOOP and len(path) <= 3 and _exists(path)


def _exists(path: Path) -> bool:
    return bool(_schema_of(path))


def _schema_of(path: Path) -> Mapping[str, Any]:
    """The definition of a field; empty if there is none."""
    schema: Mapping[str, Any] = load("built/upgradeplan.json")
    for step in path:
        schema = schema.get("properties", {}).get(step)
        if schema is None:
            return {}
    return schema
