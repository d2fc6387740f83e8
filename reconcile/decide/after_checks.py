"""Carries out the checks of the time after an upgrade once a plan has nothing left to do. What they find is reported in
an event and recorded in the status. It holds nothing, and fails nothing: the upgrade is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.check_gate import in_an_event, offenders_of, remedies_of, results_of
from reconcile.preflight.check_result import CheckOutcome, CheckResult
from renderer.model.check import CheckTime

VERIFICATION = "verification"
"""The field of the status that has what was found."""
NOT_AS_EXPECTED = "VerificationWarned"
_PLACE = "after"
_LONGEST = 4_000
"""Characters of all that one check has found, in the status."""
_WORTH_AN_EVENT = (CheckOutcome.BLOCKED, CheckOutcome.WARNED)
_RECORDED = (*_WORTH_AN_EVENT, CheckOutcome.ADVISED)


def verify(builder: DecisionBuilder) -> None:
    """Reports and records what is not as it has to be after an upgrade."""
    given = builder.observation.preflight
    if given is None:
        return
    results = tuple(results_of(builder, _PLACE, CheckTime.AFTER, None, given()))
    if found := [_recorded(result) for result in results if result.outcome in _RECORDED]:
        builder.status = builder.status.with_field(VERIFICATION, found)
    if worth := [result for result in results if result.outcome in _WORTH_AN_EVENT]:
        builder.event("Warning", NOT_AS_EXPECTED, f"after the upgrade: {in_an_event(worth)}")


def _recorded(result: CheckResult) -> Mapping[str, Any]:
    return {
        "check": result.check.id,
        "outcome": result.outcome.value,
        "message": offenders_of(result, _LONGEST),
        "remedy": "; ".join(remedies_of(result))[:_LONGEST],
    }
