"""Finds what accepts the risk of a check: an annotation or field of the plan, its id in accept-risk, skip-webhook."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from reconcile.preflight.check_result import Acceptance
from reconcile.probes.rules.call import parse_bool
from renderer.model.check import AnnotationOverride, Check, CheckTime, FieldOverride
from renderer.model.path import look_up, path_name
from renderer.model.plan_api import PREFIX, older_spelling
from renderer.model.ref import Body

ACCEPT_RISK = f"{PREFIX}accept-risk"
SKIP_WEBHOOK = f"{PREFIX}skip-webhook"
_SKIPPED = frozenset((CheckTime.CREATE, CheckTime.START))
"""The times at which `skip-webhook` accepts: it never reaches into a running upgrade."""


def acceptance_of(check: Check, plan: Body, when: Collection[CheckTime]) -> Acceptance | None:
    """The thing that accepts the check's findings at all of these times; None where nothing does, or nothing can.

    `plan` is empty if there is none.
    """
    if not check.acceptable:
        return None
    annotations = look_up(plan, ("metadata", "annotations")) or {}
    return _by_id(check, annotations) or _by_override(check, plan, annotations) or _by_skip(check, annotations, when)


def accepted_ids(annotations: Mapping[str, Any]) -> tuple[str, ...]:
    """The ids in `accept-risk`, in their order."""
    return tuple(filter(None, re.split(r"[\s,]+", str(annotations.get(ACCEPT_RISK) or ""))))


def _by_id(check: Check, annotations: Mapping[str, Any]) -> Acceptance | None:
    return _by_annotation(ACCEPT_RISK, check.id) if check.id in accepted_ids(annotations) else None


def _by_override(check: Check, plan: Body, annotations: Mapping[str, Any]) -> Acceptance | None:
    match check.override:
        case AnnotationOverride(key=key, equals=equals):
            return _by_key(f"{PREFIX}{key}", annotations, equals)
        case FieldOverride(path=path, equals=equals) if look_up(plan, path) == equals:
            return Acceptance(by=f"field {path_name(path)}", value=_text(equals))
    return None


def _by_skip(check: Check, annotations: Mapping[str, Any], when: Collection[CheckTime]) -> Acceptance | None:
    if CheckTime.CREATE not in check.when or not _SKIPPED.issuperset(set(check.when).intersection(when)):
        return None
    return _by_key(SKIP_WEBHOOK, annotations, "true")


def _by_key(key: str, annotations: Mapping[str, Any], equals: str | bool) -> Acceptance | None:
    for name in (key, older_spelling(key)):
        found = annotations.get(name)
        if isinstance(found, str) and (parse_bool(found) is equals if isinstance(equals, bool) else found == equals):
            return _by_annotation(name, found)
    return None


def _by_annotation(key: str, value: str) -> Acceptance:
    return Acceptance(by=f"annotation {key}", value=value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def how_to_accept(check: Check) -> str:
    """The way to accept the risk; empty where nothing accepts it."""
    if not check.acceptable:
        return ""
    match check.override:
        case AnnotationOverride(key=key, equals=equals):
            return f'annotation {PREFIX}{key}: "{_text(equals)}"'
        case FieldOverride(path=path, equals=equals):
            return f"{path_name(path)}: {_text(equals)}"
    return f'annotation {ACCEPT_RISK}: "{check.id}"'
