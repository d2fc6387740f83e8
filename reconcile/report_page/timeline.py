"""The timeline of a run: its phases, and what was done for each node, in seconds since it began."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reconcile.report.progress import phase_model
from reconcile.status.plan import TERMINAL, PlanStatus
from reconcile.status.record import StepState
from reconcile.status.times import time_of
from renderer.model.phase import Phase

Model = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """The time when a run began, and the last that is known about it; `over`: it has ended then."""

    began: datetime
    until: datetime
    over: bool

    def at(self, moment: datetime) -> int:
        return max(0, int((moment - self.began).total_seconds()))

    @property
    def took(self) -> int:
        return self.at(self.until)


def times_of(status: PlanStatus, first: datetime, last: datetime) -> RunTimes:
    """The times of a run that was seen from `first` to `last`; its record may begin earlier, or end earlier."""
    transitions = [time_of(entry["phaseTransitionTimestamp"]) for entry in _transitions(status)]
    over = status.phase in TERMINAL
    ends = [*transitions, *filter(None, [status.last_end()])]
    began = min([first, *transitions]) if not over or len(transitions) == 0 else min(transitions)
    return RunTimes(began=began, until=max(ends) if over and ends else max([last, *ends]), over=over)


def phases_of(status: PlanStatus, phases: Sequence[Phase], times: RunTimes) -> list[Model]:
    """The phases in their order, with the steps that took a second or longer and are no node's."""
    return [_phase(phase, status, times) for phase in phases]


def _phase(phase: Phase, status: PlanStatus, times: RunTimes) -> Model:
    known = phase_model(phase, status)
    began = times.at(time_of(known["began"])) if known["began"] else None
    ended = times.at(time_of(known["ended"])) if known["ended"] else None
    if known["state"] == "failed" and ended is None:
        ended = times.took
    return {
        "name": phase.name,
        "state": known["state"],
        "began": began,
        "ended": ended,
        "skipped": known["skipped"],
        "steps": [step for step in _steps(phase.name, None, status, times) if _is_long(step, times)],
    }


def nodes_of(status: PlanStatus, phases: Sequence[Phase], times: RunTimes) -> list[Model]:
    """Each node with the steps that took a second or longer, in the order in which they began."""
    places = (node for _, node in (*status.records, *status.done) if node)
    names = sorted({*status.node_states, *places})
    return [_node(name, status, phases, times) for name in names]


def _node(name: str, status: PlanStatus, phases: Sequence[Phase], times: RunTimes) -> Model:
    entry = status.node_states.get(name) or {}
    steps = [step for phase in phases for step in _steps(phase.name, name, status, times) if _is_long(step, times)]
    return {
        "name": name,
        "state": entry.get("state", ""),
        "message": entry.get("message", "") or entry.get("reason", ""),
        "steps": sorted(steps, key=lambda step: int(step["began"])),
    }


def _is_long(step: Model, times: RunTimes) -> bool:
    return bool(
        step["state"] == StepState.FAILED or (times.took if step["ended"] is None else step["ended"]) > step["began"]
    )


def _steps(phase: str, node: str | None, status: PlanStatus, times: RunTimes) -> Iterator[Model]:
    for name, record in status.records.get((phase, node), {}).items():
        if record.state is not StepState.SKIPPED:
            yield {
                "step": f"{phase}/{name}",
                "state": str(record.state),
                "began": times.at(record.started),
                "ended": times.at(record.ended) if record.ended else None,
            }
    for name, text in status.done.get((phase, node or ""), {}).items():
        yield from _folded(f"{phase}/{name}", text, times)


def _folded(step: str, text: str, times: RunTimes) -> Iterator[Model]:
    """The short text of a step that a node has ended: `2026-01-01T00:00:00Z 35s 1a2b3c`, or `... skipped`."""
    end, _, rest = text.partition(" ")
    seconds = rest.partition("s")[0]
    if seconds.isdigit():
        ended = time_of(end)
        began = ended - timedelta(seconds=int(seconds))
        yield {"step": step, "state": str(StepState.COMPLETED), "began": times.at(began), "ended": times.at(ended)}


def _transitions(status: PlanStatus) -> Sequence[Mapping[str, str]]:
    return status.rest.get("phaseTransitionTimestamps") or ()
