"""The fields that a run has borrowed, also those whose record is dropped once they are returned."""

from __future__ import annotations

from typing import Any

from reconcile.borrow.loan import path_of
from reconcile.report_page.recorded_run import RecordedRun, Words
from reconcile.report_page.timeline import RunTimes
from reconcile.status.times import time_of
from renderer.model.path import path_name
from renderer.redaction import Redactor

Model = dict[str, Any]


def loans_of_run(run: RecordedRun, times: RunTimes, redactor: Redactor) -> list[Model]:
    """In the order in which they were taken. A loan that a later record does not have any more was returned by then."""
    found: dict[tuple[str, ...], Model] = {}
    for moment in run.moments:
        now = {_key(item): item for item in moment.status.get("borrowed") or ()}
        for key in found.keys() - now.keys():
            if found[key]["returned"] is None:
                found[key]["returned"] = times.at(moment.time)
        found |= {key: _loan(item, times, redactor) for key, item in now.items()}
    return sorted(found.values(), key=lambda loan: int(loan["taken"]))


def _key(item: Words) -> tuple[str, ...]:
    return (item["kind"], item.get("namespace", ""), item["name"], item["path"], item["taken"])


def _loan(item: Words, times: RunTimes, redactor: Redactor) -> Model:
    shown = redactor.value(dict(item))
    where = f"{item['namespace']}/{item['name']}" if item.get("namespace") else item["name"]
    return {
        "object": f"{item['kind']} {where}",
        "path": path_name(path_of(item["path"])),
        "was": None if item["absent"] else shown.get("value"),
        "absent": bool(item["absent"]),
        "taken": times.at(time_of(item["taken"])),
        "returned": times.at(time_of(item["returned"])) if item.get("returned") else None,
    }
