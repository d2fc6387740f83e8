"""The findings of checks on inputs as problems of those inputs, each at the object, or the plan's field, by line."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.preflight.accepting import how_to_accept
from reconcile.preflight.check_result import CheckFinding, CheckOutcome, CheckReport, CheckResult
from reconcile.preflight.denied_field import denied_field
from renderer.documents import Inputs
from renderer.errors import Problem
from renderer.model.check import Denial
from renderer.model.ref import Ref, ref_of
from renderer.source_document import SourceDocument

BLOCKED, WARNED = "PreflightBlocked", "PreflightWarned"


def blocking(report: CheckReport, inputs: Inputs, *, acceptable: bool = True) -> tuple[Problem, ...]:
    """Everything that blocks the upgrade. Not `acceptable`: something else does in any case, so that accepting a risk
    would lead nowhere."""
    return tuple(_problems(report, CheckOutcome.BLOCKED, BLOCKED, inputs, acceptable=acceptable))


def warning(report: CheckReport, inputs: Inputs) -> tuple[Problem, ...]:
    """Everything that would harm or surprise somebody."""
    return tuple(_problems(report, CheckOutcome.WARNED, WARNED, inputs))


def _problems(
    report: CheckReport, outcome: CheckOutcome, reason: str, inputs: Inputs, *, acceptable: bool = False
) -> Iterator[Problem]:
    results = [result for result in report.results if result.outcome is outcome]
    sources = {ref_of(source.body): source for source in inputs.objects} if results else {}
    for result in results:
        accept = how_to_accept(result.check) if acceptable else ""
        yield from (_problem(result, item, reason, accept, sources, inputs) for item in result.findings)


def _problem(
    result: CheckResult,
    finding: CheckFinding,
    reason: str,
    accept: str,
    sources: dict[Ref, SourceDocument],
    inputs: Inputs,
) -> Problem:
    """At the object, or at the field of the plan that the check is about."""
    message = finding.text
    remedy = f"{finding.remedy}; or accept the risk ({result.check.id}): {accept}" if accept else finding.remedy
    source = sources.get(finding.ref) if finding.ref else None
    if source is not None:
        return source.problem(reason, message, remedy=remedy)
    if inputs.plan is not None and result.check.denial.field != Denial().field:
        field = denied_field(result.check, finding, inputs.plan.body)
        return inputs.plan.problem(reason, message, field, remedy=remedy)
    return Problem(reason=reason, message=message, remedy=remedy)
