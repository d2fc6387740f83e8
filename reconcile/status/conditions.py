"""Conditions of a plan: `lastTransitionTime` changes with the status and not otherwise (Kubernetes API conventions)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconcile.status.times import time_text
from renderer.errors import shortened

_LONGEST = 32_000
"""Characters of a message; the API server takes 32,768."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCondition:
    """A condition of an UpgradePlan without its transition time."""

    type: str
    status: str
    reason: str
    message: str = ""


def with_condition(
    conditions: Iterable[Mapping[str, Any]], expected: PlanCondition, *, now: datetime, generation: int
) -> tuple[Mapping[str, Any], ...]:
    """`conditions` with one of them set; unchanged, times included, where it is the same already."""
    kept = tuple(conditions)
    old = find_condition(kept, expected.type)
    new = {
        "type": expected.type,
        "status": expected.status,
        "reason": expected.reason,
        "message": shortened(expected.message, _LONGEST),
        "observedGeneration": generation,
        "lastTransitionTime": old["lastTransitionTime"] if old and old["status"] == expected.status else time_text(now),
    }
    if old == new:
        return kept
    if old is None:
        return (*kept, new)
    return tuple(new if condition is old else condition for condition in kept)


def find_condition(conditions: Iterable[Mapping[str, Any]], kind: str) -> Mapping[str, Any] | None:
    return next((condition for condition in conditions if condition.get("type") == kind), None)
