"""Diffs for machines: the document of `-o json`, described by `schemas/diff.json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconcile.diff.entry import Change, Diff, DiffEntry, Untried
from reconcile.diff.trial import GoesBack
from renderer.errors import Problem
from renderer.model.path import ABSENT, path_name
from renderer.model.ref import Ref


def to_json(plan: str, diffs: Iterable[Diff]) -> dict[str, Any]:
    """JSON-like values. A key is left out where there is nothing to say; of `before` and `after` that means absent."""
    return {"plan": plan, "phases": [_phase(diff) for diff in diffs]}


def _phase(diff: Diff) -> dict[str, Any]:
    return {
        "phase": diff.phase,
        "changes": diff.exit_code() != 0,
        "summary": {str(operation): count for operation, count in sorted(diff.counts().items())},
        "entries": [_entry(entry) for entry in diff.entries],
        "untried": [_untried(step) for step in diff.untried],
    }


def _entry(entry: DiffEntry) -> dict[str, Any]:
    parts = {
        "fields": [_change(change) for change in entry.changes],
        "returns": [_goes_back(field) for field in entry.goes_back],
        "runtimeFields": [path_name(path) for path in entry.run_time],
        "skippedIf": list(entry.skipped_if),
        "waitsFor": entry.waits_for,
        "reason": entry.because,
        "problem": _problem(entry.problem) if entry.problem else None,
        "warnings": list(entry.warnings),
        "object": entry.after if entry.before is None else None,
    }
    head = {"operation": str(entry.operation), "step": entry.step, **_ref(entry.ref)}
    return {**head, "file": entry.file, "template": entry.template, **_said(parts)}


def _change(change: Change) -> dict[str, Any]:
    return {"field": change.field, **_present("before", change.before), **_present("after", change.after)}


def _goes_back(field: GoesBack) -> dict[str, Any]:
    value = {"onlyOurs": True} if field.only_ours else _present("value", field.value)
    return {"field": path_name(field.path), **value, "on": list(field.occasions)}


def _present(key: str, value: Any) -> dict[str, Any]:
    return {} if value is ABSENT else {key: value}


def _ref(ref: Ref) -> dict[str, Any]:
    parts = {"apiVersion": ref.api_version, "kind": ref.kind, "namespace": ref.namespace, "name": ref.name}
    return _said(parts)


def _problem(problem: Problem) -> dict[str, Any]:
    return _said({key: getattr(problem, key) for key in ("reason", "message", "file", "line", "field", "remedy")})


def _untried(step: Untried) -> dict[str, Any]:
    pending = [{"input": item.input, "remedy": item.remedy} for item in step.pending]
    return {"step": step.step, **_said({"skipped": step.skipped, "pending": pending})}


def _said(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in parts.items() if value not in (None, "", [])}
