"""A diff for people: one table, then what each manifest would change, as a unified diff of YAML. No colour here."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from reconcile.diff.entry import Change, Diff, DiffEntry, Untried
from reconcile.diff.trial import GoesBack, Operation
from renderer.columns import aligned
from renderer.model.path import ABSENT, path_name
from renderer.model.ref import Body
from renderer.yaml_io import dump

_HEADINGS = ("OP", "OBJECT", "FIELDS", "WAITS FOR")
_SUMMARY: Mapping[Operation, str] = {
    Operation.CREATE: "to create",
    Operation.CHANGE: "to change",
    Operation.ADOPT: "to adopt",
    Operation.BORROW: "to borrow",
    Operation.RETURN_LATER: "borrowed already",
    Operation.UNCHANGED: "unchanged",
    Operation.SKIP: "skipped",
    Operation.WAIT: "waiting",
    Operation.PENDING: "pending",
    Operation.CONFLICT: "in conflict",
    Operation.REFUSED: "refused",
}
"""The words that follow the number of an operation."""


def table(diff: Diff) -> str:
    """One line a manifest, aligned; then how many of which operation. Ends with a newline."""
    lines = [f"{diff.plan}: {diff.phase}", ""]
    rows = [_HEADINGS, *(_row(entry) for entry in diff.entries)]
    lines += list(aligned(rows)) if diff.entries else ["nothing to apply in this phase"]
    lines += ["", _summary(diff)] if diff.entries else []
    return "\n".join([*lines, *_untried(diff), ""])


def details(diff: Diff) -> str:
    """The details of the table's lines. Manifests without a change or a message are left out."""
    return "\n".join(line for entry in diff.entries for line in _details(entry))


def _row(entry: DiffEntry) -> tuple[str, ...]:
    return (str(entry.operation), str(entry.ref), _fields(entry), entry.waits_for or "-")


def _fields(entry: DiffEntry) -> str:
    """The first field, and how many there are besides."""
    fields = [change.field for change in entry.changes] or [path_name(path) for path in entry.run_time]
    if not fields:
        return "all" if entry.before is None and entry.after is not None else "-"
    return fields[0] if len(fields) == 1 else f"{fields[0]} +{len(fields) - 1}"


def _summary(diff: Diff) -> str:
    counts = diff.counts()
    return ", ".join(f"{counts[operation]} {_SUMMARY[operation]}" for operation in Operation if counts[operation])


def _untried(diff: Diff) -> Iterator[str]:
    """One line for a step, on however many nodes it is."""
    said = Counter((_step_name(step.step), text) for step in diff.untried for text in _why_untried(step))
    for (name, text), count in said.items():
        yield f"{name}{f' on {count} nodes' if count > 1 else ''}: {text}"


def _step_name(step_id: str) -> str:
    """`Phase/Step` of `Phase/Step/node`."""
    return "/".join(step_id.split("/")[:2])


def _why_untried(step: Untried) -> Iterator[str]:
    if step.skipped:
        yield f"skipped, {step.skipped}"
    for pending in step.pending:
        yield f"pending: {pending.input} is not known yet; {pending.remedy}"


def _details(entry: DiffEntry) -> Iterator[str]:
    said = list(_said(entry))
    shown = list(_unified(entry))
    if not (said or shown):
        return
    yield f"{entry.operation} {entry.ref} ({entry.template})"
    yield from (f"    {line}" for line in said)
    yield from shown
    yield ""


def _said(entry: DiffEntry) -> Iterator[str]:
    if entry.because:
        yield entry.because
    if entry.problem:
        yield from str(entry.problem).splitlines()
    if entry.after is None:
        yield from (_values(change) for change in entry.changes)
    yield from (f"skipped if {reason}, which is known only at run time" for reason in entry.skipped_if)
    yield from (f"{path_name(path)} is known only at run time" for path in entry.run_time)
    yield from (_goes_back(field) for field in entry.goes_back)
    yield from (f"warning: {warning}" for warning in entry.warnings)


def _values(change: Change) -> str:
    """For a change that no unified diff shows."""
    before, after = (_inline(value) for value in (change.before, change.after))
    return f"{change.field}: {before} -> {after}"


def _goes_back(field: GoesBack) -> str:
    if not field.occasions:
        return f"{path_name(field.path)} stays as the plan sets it"
    on = " and ".join(filter(None, (", ".join(field.occasions[:-1]), field.occasions[-1])))
    if field.only_ours:
        return f"{path_name(field.path)}: what the plan adds is removed again on {on}"
    if field.value is ABSENT:
        return f"{path_name(field.path)} is removed again on {on}"
    return f"{path_name(field.path)} is set back to {_inline(field.value)} on {on}"


def _inline(value: Any) -> str:
    return "absent" if value is ABSENT else json.dumps(value, ensure_ascii=False)


def _unified(entry: DiffEntry) -> Iterator[str]:
    """Three lines of context; a new object in full."""
    if entry.after is None:
        return
    names = ("live" if entry.before is not None else "absent", "applied")
    yield from difflib.unified_diff(_lines(entry.before), _lines(entry.after), *names, n=3, lineterm="")


def _lines(body: Body | None) -> list[str]:
    return [] if body is None else dump(body).splitlines()
