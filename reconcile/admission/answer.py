"""Formats the findings of checks as the causes of a refusal, in Kubernetes' own kinds of errors, and as warnings. Pure.

The order is what is wrong with the plan, then with the cluster, then what could not be looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from reconcile.admission.review import Judgement
from reconcile.cluster.errors import StatusCause
from reconcile.preflight.accepting import how_to_accept
from reconcile.preflight.check_result import CheckFinding, CheckOutcome, CheckReport, CheckResult
from reconcile.preflight.denied_field import denied_field
from reconcile.probes.look import ReadFailure
from renderer.model.check import Check, CheckSeverity
from renderer.model.path import ABSENT, Path, look_up, parse_path, path_name
from renderer.model.ref import Body

_TYPES: Mapping[str, tuple[str, str]] = {
    "Forbidden": ("FieldValueForbidden", "Forbidden"),
    "Invalid": ("FieldValueInvalid", "Invalid value"),
    "NotFound": ("FieldValueNotFound", "Not found"),
    "Required": ("FieldValueRequired", "Required value"),
}
"""By the word of a Checks document: a cause's reason, and how its message begins (field.ErrorType of apimachinery)."""
_WITH_VALUE = ("Invalid", "NotFound")
_INTERNAL = ("InternalError", "Internal error")
_MOST = 100
"""Findings of one check that are listed one by one."""
_MOST_WARNINGS = 20
_WARNING = 250
"""Characters: API servers cut a longer one at 256."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedReads:
    """Reads that the cluster has not answered: those of checks, and those by which their names are made."""

    of_names: tuple[ReadFailure, ...] = ()
    of_checks: tuple[ReadFailure, ...] = ()


def judged(report: CheckReport, plan: Body, failed: FailedReads) -> Judgement:
    """The findings, and what hangs on a failed read, since nobody knows. Things that admission can never see are left
    to the upgrade's start."""
    causes = list(dict.fromkeys(chain.from_iterable(_causes(result, plan) for result in report.results)))
    ordered = sorted(causes, key=lambda cause: cause.field == "spec")  # keeps the catalogue's order otherwise
    unread = _unread(report.results, failed)
    return Judgement(causes=(*ordered, *unread), warnings=tuple(_warnings(report.results))[:_MOST_WARNINGS])


def internal_error(text: str) -> StatusCause:
    reason, words = _INTERNAL
    return StatusCause(field="", reason=reason, message=f"{words}: {text}")


def _causes(result: CheckResult, plan: Body) -> Iterator[StatusCause]:
    if result.outcome is not CheckOutcome.BLOCKED:
        return
    said: set[str] = set()
    for finding in result.findings[:_MOST]:
        yield _cause(result.check, finding, plan, _remedy(result.check, finding, said))
    more = len(result.findings) - _MOST
    if more > 0:
        text = f"{more} more of this kind; `upgradeplan preflight` lists them all"
        yield _denial(result.check, parse_path(result.check.denial.field), plan, text)


def _remedy(check: Check, finding: CheckFinding, said: set[str]) -> str:
    """The remedy and what accepts the risk; once for all findings of the same."""
    if finding.remedy in said:
        return ""
    said.add(finding.remedy)
    accept = how_to_accept(check)
    return f"; {finding.remedy}" + (f"; or accept the risk ({check.id}): {accept}" if accept else "")


def _cause(check: Check, finding: CheckFinding, plan: Body, remedy: str) -> StatusCause:
    return _denial(check, denied_field(check, finding, plan), plan, f"{finding.text}{remedy}")


def _denial(check: Check, path: Path, plan: Body, text: str) -> StatusCause:
    reason, words = _TYPES[check.denial.cause]
    value = f"{_shown(look_up(plan, path))}: " if check.denial.cause in _WITH_VALUE else ""
    return StatusCause(field=path_name(path), reason=reason, message=f"{words}: {value}{text}")


def _shown(value: Any) -> str:
    return "null" if value is ABSENT else json.dumps(value, ensure_ascii=False, default=dict)


def _unread(results: Iterable[CheckResult], failed: FailedReads) -> Iterator[StatusCause]:
    """One cause for each read, with the checks that hang on it."""
    waiting: dict[ReadFailure, list[str]] = {}
    for result in results:
        if result.check.severity is CheckSeverity.BLOCK and result.outcome is CheckOutcome.UNKNOWN:
            for failure in _missed_by(result, failed):
                waiting.setdefault(failure, []).append(result.check.id)
    for failure, checks in waiting.items():
        remedy = f"; {failure.remedy}" if failure.remedy else ""
        yield internal_error(f"{failure.why} (needed by {', '.join(checks)}){remedy}")


def _missed_by(result: CheckResult, failed: FailedReads) -> tuple[ReadFailure, ...]:
    """A check to which no read has failed lacks a name."""
    whys = {item.why for item in result.read_failures}
    return tuple(item for item in failed.of_checks if item.why in whys) or failed.of_names


def _warnings(results: Sequence[CheckResult]) -> Iterator[str]:
    for result in results:
        match result.outcome:
            case CheckOutcome.WARNED:
                for finding in result.findings:
                    yield _short(f"{result.check.id}: {finding.text}")
            case CheckOutcome.ACCEPTED if result.accepted:
                yield _short(f"{result.check.id}: accepted by {result.accepted.by}: {result.reason}")


def _short(text: str) -> str:
    return text if len(text) <= _WARNING else f"{text[: _WARNING - 1]}…"
