"""The status of an UpgradePlan as the API has it: read into a `PlanStatus`, and written again.

What is not known here (fields of another version) is carried along untouched.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconcile.borrow.loan import Loan
from reconcile.status.plan import PlanStatus, ReadSteps
from reconcile.status.steps_body import read_steps, steps_body
from reconcile.status.times import time_of, time_text
from renderer.model.sharing import ByIdentity


def status_of(plan: Mapping[str, Any], before: PlanStatus | None = None) -> PlanStatus:
    """Reads the status of an UpgradePlan. Steps that are the very same as when `before` was read are not read again.
    Raises `KeyError` or `ValueError` for records that we cannot have written."""
    body = plan.get("status") or _NO_STATUS
    known = _KNOWN.get(body)
    return known if known is not None else _KNOWN.put(body, _status(body, before.read if before else ReadSteps()))


_NO_STATUS: Mapping[str, Any] = {}
_KNOWN = ByIdentity[PlanStatus](limit=4)
"""A round asks several times."""


def _status(body: Mapping[str, Any], before: ReadSteps) -> PlanStatus:
    raw = dict(body)
    read = read_steps(raw.pop("steps", None) or {}, before)
    return PlanStatus(
        phase=raw.pop("currentPhase", "") or "",
        conditions=tuple(raw.pop("conditions", None) or ()),
        node_states=raw.pop("nodeUpgradeStatuses", None) or {},
        loans=tuple(Loan.from_status(item) for item in raw.pop("borrowed", None) or ()),
        records=read.records,
        attempts=read.attempts,
        done=read.done,
        skipped=read.skipped,
        waiting={what: time_of(since) for what, since in (raw.pop("waitingSince", None) or {}).items()},
        rest=raw,
        read=read,
    )


def outline_of(plan: Mapping[str, Any]) -> PlanStatus:
    """The phase and the conditions alone, which say whether a plan has begun and whether it has ended."""
    raw = plan.get("status") or {}
    return PlanStatus(phase=raw.get("currentPhase") or "", conditions=tuple(raw.get("conditions") or ()))


def loans_of(plan: Mapping[str, Any]) -> tuple[Loan, ...]:
    """The loans of a plan, returned or not."""
    return tuple(Loan.from_status(item) for item in (plan.get("status") or {}).get("borrowed") or ())


def status_body(status: PlanStatus) -> dict[str, Any]:
    """The status as the API has it; the inverse of `status_of`. What has not changed is the very part that was read."""
    entries = {
        **status.rest,
        "currentPhase": status.phase,
        "conditions": list(status.conditions),
        "nodeUpgradeStatuses": status.node_states,
        "steps": steps_body(status),
        "borrowed": [loan.to_status() for loan in status.loans],
        "waitingSince": {what: time_text(since) for what, since in sorted(status.waiting.items())},
    }
    return {key: value for key, value in entries.items() if value not in (None, "", [], {})}
