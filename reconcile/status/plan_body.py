"""The status of an UpgradePlan as the API has it: read into a `PlanStatus`, and written again.

What is not known here (fields of another version) is carried along untouched.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from reconcile.borrow.loan import Loan
from reconcile.status.plan import Place, PlanStatus
from reconcile.status.record import StepRecord, record_body, record_from
from reconcile.status.times import time_of, time_text
from renderer.model.sharing import SameObject


def status_of(plan: Mapping[str, Any]) -> PlanStatus:
    """Reads the status of an UpgradePlan. Raises `KeyError` or `ValueError` for records that we cannot have written."""
    return _status(SameObject(plan.get("status") or _NO_STATUS))


_NO_STATUS: Mapping[str, Any] = {}


@lru_cache(maxsize=4)  # a round asks several times
def _status(body: SameObject) -> PlanStatus:
    raw = dict(body.it)
    steps = raw.pop("steps", None) or {}
    return PlanStatus(
        phase=raw.pop("currentPhase", "") or "",
        conditions=tuple(raw.pop("conditions", None) or ()),
        node_states=raw.pop("nodeUpgradeStatuses", None) or {},
        loans=tuple(Loan.from_status(item) for item in raw.pop("borrowed", None) or ()),
        records=_records(steps),
        attempts=_attempts(steps),
        done={
            (phase, node): texts for phase, body in steps.items() for node, texts in (body.get("done") or {}).items()
        },
        skipped={phase: body["skipped"] for phase, body in steps.items() if "skipped" in body},
        waiting={what: time_of(since) for what, since in (raw.pop("waitingSince", None) or {}).items()},
        rest=raw,
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
        "nodeUpgradeStatuses": dict(sorted(status.node_states.items())),
        "steps": _steps(status),
        "borrowed": [loan.to_status() for loan in status.loans],
        "waitingSince": {what: time_text(since) for what, since in sorted(status.waiting.items())},
    }
    return {key: value for key, value in entries.items() if value not in (None, "", [], {})}


def _steps(status: PlanStatus) -> dict[str, Any]:
    steps: dict[str, dict[str, Any]] = {}
    for phase, because in status.skipped.items():
        steps.setdefault(phase, {})["skipped"] = because
    for (phase, node), records in status.records.items():
        if records:
            bodies = steps.setdefault(phase, {}).setdefault("records", {})
            for step, record in records.items():
                bodies[f"{step}/{node}" if node else step] = record_body(record)
    for (phase, node), attempts in status.attempts.items():
        for step, records_before in attempts.items():
            key = f"{step}/{node}" if node else step
            steps.setdefault(phase, {}).setdefault("attempts", {})[key] = [record_body(each) for each in records_before]
    for (phase, node), texts in status.done.items():
        steps.setdefault(phase, {}).setdefault("done", {})[node] = texts
    return steps


def _records(steps: Mapping[str, Any]) -> dict[Place, dict[str, StepRecord]]:
    records: dict[Place, dict[str, StepRecord]] = {}
    for phase, body in steps.items():
        for key, record in (body.get("records") or {}).items():
            step, _, node = key.partition("/")
            records.setdefault((phase, node or None), {})[step] = record_from(record)
    return records


def _attempts(steps: Mapping[str, Any]) -> dict[Place, dict[str, tuple[StepRecord, ...]]]:
    attempts: dict[Place, dict[str, tuple[StepRecord, ...]]] = {}
    for phase, body in steps.items():
        for key, records in (body.get("attempts") or {}).items():
            step, _, node = key.partition("/")
            attempts.setdefault((phase, node or None), {})[step] = tuple(map(record_from, records))
    return attempts
