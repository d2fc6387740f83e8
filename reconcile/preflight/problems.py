"""The findings of checks on inputs as problems of those inputs, each at the object's file and line."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.preflight.accepting import how_to_accept
from reconcile.preflight.check_result import CheckFinding, CheckOutcome, CheckReport, CheckResult
from renderer.documents import Inputs
from renderer.errors import Problem
from renderer.model.ref import Ref, ref_of
from renderer.source_document import SourceDocument

BLOCKED, WARNED = "PreflightBlocked", "PreflightWarned"


def blocking(report: CheckReport, inputs: Inputs) -> tuple[Problem, ...]:
    """Everything that blocks the upgrade."""
    return tuple(_problems(report, CheckOutcome.BLOCKED, BLOCKED, inputs))


def warning(report: CheckReport, inputs: Inputs) -> tuple[Problem, ...]:
    """Everything that would harm or surprise somebody."""
    return tuple(_problems(report, CheckOutcome.WARNED, WARNED, inputs))


def _problems(report: CheckReport, outcome: CheckOutcome, reason: str, inputs: Inputs) -> Iterator[Problem]:
    results = [result for result in report.results if result.outcome is outcome]
    sources = {ref_of(source.body): source for source in inputs.objects} if results else {}
    for result in results:
        yield from (_problem(result, item, reason, sources) for item in result.findings)


def _problem(result: CheckResult, finding: CheckFinding, reason: str, sources: dict[Ref, SourceDocument]) -> Problem:
    of = f" (before {finding.node} is upgraded)" if finding.node else ""
    message = finding.text + of
    accept = how_to_accept(result.check) if result.outcome is CheckOutcome.BLOCKED else ""
    remedy = f"{finding.remedy}; or accept the risk ({result.check.id}): {accept}" if accept else finding.remedy
    source = sources.get(finding.ref) if finding.ref else None
    if source is None:
        return Problem(reason=reason, message=message, remedy=remedy)
    return source.problem(reason, message, remedy=remedy)
