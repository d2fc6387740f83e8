"""The model of a run's report: schemas/report.json. Times are seconds since the run began."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from reconcile.report.progress import verification_of
from reconcile.report_page.folded_waits import blocked_checks, waits_of_run
from reconcile.report_page.loans import loans_of_run
from reconcile.report_page.moved_machines import machines_of
from reconcile.report_page.recorded_run import RecordedRun, RunSource
from reconcile.report_page.run_versions import versions_of
from reconcile.report_page.timeline import RunTimes, nodes_of, phases_of, times_of
from reconcile.status.plan import FAILED, SUCCEEDED, PlanStatus, StepKey
from reconcile.status.plan_body import status_of
from reconcile.status.record import StepRecord
from reconcile.status.times import time_of, time_text
from renderer.model.phase import Phase
from renderer.redaction import Redactor

Model = dict[str, Any]

_RISK_ACCEPTED = "RiskAccepted"


def run_report(run: RecordedRun, phases: Sequence[Phase], redactor: Redactor) -> Model:
    """`phases` are those of the templates, in their order."""
    status = status_of({"status": run.last.status})
    times = times_of(status, run.moments[0].time, run.last.time)
    spec: Mapping[str, Any] = run.plan.get("spec") or {}
    return {
        "plan": run.name,
        "source": str(run.source),
        "origin": run.origin,
        "target": str(spec.get("version") or spec.get("image") or ""),
        "phase": status.phase,
        "result": _result(status),
        "message": str((status.condition("Progressing") or {}).get("message", "")),
        "began": "" if run.source is RunSource.REHEARSAL else time_text(times.began),
        "took": times.took,
        "versions": versions_of(run),
        "phases": phases_of(status, phases, times),
        "nodes": nodes_of(status, phases, times),
        "failures": [_failure(key, record, run, times) for key, record in _failed(status)],
        "waits": waits_of_run(run, times),
        "causes": [dict(cause) for cause in run.causes],
        "machines": machines_of(run, times),
        "borrowed": loans_of_run(run, times, redactor),
        "checks": blocked_checks(run, times),
        "accepted": [_accepted(entry, run, times) for entry in run.last.status.get("acceptedRisks") or ()],
        "verification": verification_of(status),
        "events": [
            {"at": times.at(event.time), "type": event.type, "reason": event.reason, "message": event.message}
            for moment in run.moments
            for event in moment.events
        ],
        "unread": list(run.unread),
    }


def _result(status: PlanStatus) -> str:
    return {SUCCEEDED: "succeeded", FAILED: "failed"}.get(status.phase, "unfinished" if status.phase else "not started")


def _failed(status: PlanStatus) -> Iterator[tuple[StepKey, StepRecord]]:
    for (phase, node), records in status.records.items():
        for step, record in records.items():
            if record.failed:
                yield (phase, step, node), record


def _failure(key: StepKey, record: StepRecord, run: RecordedRun, times: RunTimes) -> Model:
    name = "/".join(filter(None, key))
    return {
        "step": name,
        "node": key[2] or "",
        "message": record.message,
        "at": times.at(record.ended or record.started),
        "objects": [str(made.ref) for made in record.objects],
        "logs": [
            {"object": excerpt.object, "container": excerpt.container, "lines": list(excerpt.lines)}
            for excerpt in run.excerpts.get(name, ())
        ],
    }


def _accepted(entry: Mapping[str, Any], run: RecordedRun, times: RunTimes) -> Model:
    """The event alone says what was found."""
    start = f"risk {entry['check']} is accepted by {entry['by']}: "
    said = (event.message for moment in run.moments for event in moment.events if event.reason == _RISK_ACCEPTED)
    return {
        "check": entry["check"],
        "by": entry["by"],
        "value": entry["value"],
        "when": entry["when"],
        "at": times.at(time_of(entry["time"])),
        "message": next((text for text in said if text.startswith(start)), ""),
    }
