"""Finds which documents of Services a plan needs now. Reads none of them."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.decide.decision_cache import DecisionCache
from reconcile.status.plan import PlanStatus, key_of
from reconcile.status.record import StepState
from renderer.model.phase import Fetch
from renderer.model.rendered import RenderedPlan, RenderedStep


def needed_fetches(rendered: RenderedPlan, status: PlanStatus, cache: DecisionCache) -> Iterator[Fetch]:
    """Documents of steps that have begun in the current phase, as long as a step of it is still to be rendered."""
    phase = next((p for p in rendered.phases if p.phase.active == status.phase), None)
    fetching = () if phase is None else cache.steps_of(phase).fetching
    if phase is None or not fetching or all(_is_made(status, item) for item in phase.steps):
        return
    for item in fetching:
        record = status.record(key_of(item))
        if record is not None and record.state is not StepState.SKIPPED:
            yield from item.step.fetches


def _is_made(status: PlanStatus, item: RenderedStep) -> bool:
    """True if what templates render for the step is not asked for any more."""
    record = status.record(key_of(item))
    return status.is_over(key_of(item)) or (record is not None and record.made_its_objects)
