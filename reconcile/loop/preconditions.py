"""Decides whether this program may work on a cluster at all: not on one that runs a release older than what it was made
for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconcile.observe.facts import SERVER_VERSION
from reconcile.observe.source import Source
from reconcile.probes.look import ReadFailure
from renderer.errors import ExitCode, Problem, Problems
from renderer.versions import is_release, is_too_old


def oldest_of(values: Mapping[str, Any]) -> str:
    """The oldest release that the templates' values name."""
    return str(values["oldestServerVersion"])


def check_preconditions(source: Source, oldest: str) -> str:
    """Explains why nothing could be checked, since a version that cannot be compared is accepted; empty where it
    was.

    Raises `Problems` for a release older than `oldest`, and `Away` and its like.
    """
    found = source.get(SERVER_VERSION)
    if isinstance(found, ReadFailure):
        return f"{SERVER_VERSION} cannot be read: {found.why}"
    text = str((found or {}).get("value") or "")
    if is_too_old(text, oldest):
        raise Problems([_too_old(text, oldest)], ExitCode.NO)
    return "" if is_release(text) else f"{SERVER_VERSION} is not a release: {text!r}"


def _too_old(current: str, oldest: str) -> Problem:
    return Problem(
        reason="VersionTooOld",
        message=f"{SERVER_VERSION}: the cluster runs {current}, and only {oldest} or newer can be upgraded",
        remedy=f"upgrade it to {oldest} or newer first, as the documentation of that release describes",
    )
