"""Reads a retry as an annotation of the plan asks for it, and as `status.retry` records it once it is answered."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from reconcile.status.plan import PlanStatus
from reconcile.status.times import time_text
from renderer.model.plan_api import PREFIX

RETRY = f"{PREFIX}retry"
"""The annotation by which a plan's steps get other names, and so run again."""
TAKE_BACK = f"{PREFIX}take-back"
"""The annotation by which a failed plan returns what it has changed, and stays as a record."""
_DIGITS = 9
"""Of the number of an attempt; an annotation may be as long as anybody likes."""


def attempt_of(plan: Mapping[str, Any]) -> int:
    """The number of this attempt, from the plan's annotation; 0 for the first, and for a text that is not a number."""
    text = _requested(plan)
    return int(text) if is_number(text) else 0


def is_number(text: str) -> bool:
    """True if the text is the number of an attempt."""
    return text.isascii() and text.isdecimal() and len(text) <= _DIGITS


def unanswered_retry(plan: Mapping[str, Any], status: PlanStatus) -> str:
    """The annotation's text if nothing has been done about it yet; empty if there is no request."""
    text = _requested(plan)
    return text if text != str((status.field("retry") or {}).get("requested", "")) else ""


def last_attempt(status: PlanStatus) -> int:
    """The greatest number that was answered."""
    return int((status.field("retry") or {}).get("attempt") or 0)


def with_answer(status: PlanStatus, text: str, now: datetime, refused: str = "") -> PlanStatus:
    """Records what was asked for, and why it was refused if it was."""
    attempt = max(last_attempt(status), int(text) if is_number(text) else 0)
    answer = {"requested": text, "attempt": attempt, "at": time_text(now), "refused": refused}
    return status.with_field("retry", {key: value for key, value in answer.items() if value not in ("", None)})


def is_taken_back(plan: Mapping[str, Any]) -> bool:
    """True if somebody asks a failed plan to return what it has changed."""
    return (plan["metadata"].get("annotations") or {}).get(TAKE_BACK) == "true"


def _requested(plan: Mapping[str, Any]) -> str:
    """Nothing is requested of a cluster that is looked at without a plan."""
    return str(((plan.get("metadata") or {}).get("annotations") or {}).get(RETRY, ""))
