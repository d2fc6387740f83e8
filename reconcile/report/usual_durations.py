"""The usual duration of each phase, to compare a running one with: from earlier plans, or from a rehearsal. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low
from typing import Any

from reconcile.report.progress import phase_model
from reconcile.status.plan import SUCCEEDED
from reconcile.status.plan_body import outline_of, status_of
from reconcile.status.times import time_of
from renderer.model.phase import Phase
from renderer.model.ref import Body


def durations_of_plans(plans: Iterable[Body], phases: Sequence[Phase]) -> dict[str, int]:
    """The median of the plans that have succeeded, in seconds by phase."""
    found: dict[str, list[int]] = {}
    for plan in plans:
        if outline_of(plan).phase != SUCCEEDED:
            continue
        status = status_of(plan)
        for phase in phases:
            known = phase_model(phase, status)
            if known["began"] and known["ended"]:
                seconds = int((time_of(known["ended"]) - time_of(known["began"])).total_seconds())
                found.setdefault(phase.name, []).append(seconds)
    return {name: median_low(seconds) for name, seconds in found.items()}


def durations_of_report(model: Mapping[str, Any]) -> dict[str, int]:
    """The same of the phases that a report on a run has: schemas/report.json."""
    return {
        phase["name"]: phase["ended"] - phase["began"]
        for phase in model["phases"]
        if phase["state"] == "done" and phase["began"] is not None and phase["ended"] is not None
    }
