"""Finds the field of the plan that a finding is about, as far as its check says one."""

from __future__ import annotations

from reconcile import objects
from reconcile.preflight.check_result import CheckFinding
from renderer.model.check import Check
from renderer.model.path import Path, look_up, parse_path
from renderer.model.ref import Body


def denied_field(check: Check, finding: CheckFinding, plan: Body) -> Path:
    """The path that the check's denial names; of a list of names the entry that names the finding's object."""
    path = parse_path(check.denial.field)
    entry = named_entry(check, finding, plan)
    return path if entry is None else (*path, entry)


def named_entry(check: Check, finding: CheckFinding, plan: Body) -> int | None:
    """The index of that entry; None where the field is no list of names, or does not name it."""
    if not check.denial.each or finding.ref is None:
        return None
    names = list(objects.items(look_up(plan, parse_path(check.denial.field))))
    return names.index(finding.ref.name) if finding.ref.name in names else None
