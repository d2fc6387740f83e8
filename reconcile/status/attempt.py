"""Reads which attempt of a plan this is: a retry gives run-once objects new names."""

from __future__ import annotations

from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body

RETRY = f"{PREFIX}retry"
"""The annotation by which a plan's steps get other names, and so run again."""
_DIGITS = 9
"""Of the number of an attempt; an annotation may be as long as anybody likes."""


def attempt_of(plan: Body) -> int:
    """The number of this attempt, from the plan's annotation; none is the first."""
    text = (plan["metadata"].get("annotations") or {}).get(RETRY, "")
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else 0
