"""Carries out again what answers a pre-flight check, while that check holds the plan: each time is a round of its own.

A round begins with its number in the step's record, and only then are objects made, under names with that number. So a
loop that is killed in between begins no round twice. Of the rounds before, one is kept: the last answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from fnmatch import fnmatchcase

from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.decision import Remove, Wait
from reconcile.decide.owned import existing
from reconcile.decide.step import advance
from reconcile.decide.step_run import Progress
from reconcile.objects import uid
from reconcile.status.plan import key_of
from reconcile.status.record import StepRecord, StepState
from renderer.catalog.verify import ROUND
from renderer.model.path import look_up
from renderer.model.phase import Again
from renderer.model.ref import Body, ref_of
from renderer.model.rendered import RenderedPhase, RenderedStep

_ASKED = "again"
"""The captured value that is the annotation's when the round began."""
_KEPT = 1
"""Rounds before the new one whose objects stay."""


def look_again(builder: DecisionBuilder, phase: RenderedPhase) -> Progress:
    """Continues the rounds in progress, and starts those that are due."""
    waits = [wait for wait in builder.waits if wait.check is not None]
    reached = [_advance(builder, item, waits) for item in builder.cache.steps_of(phase).again]
    return Progress.FAILED if Progress.FAILED in reached else Progress.BUSY


def end_rounds(builder: DecisionBuilder, phase: RenderedPhase) -> None:
    """The phase is left, which never runs again: nothing waits for the rounds under way any more, and of a thousand
    nodes that all were well nothing has to be known."""
    for item in builder.cache.steps_of(phase).again:
        builder.status = builder.status.forget(key_of(item))
        if (record := builder.status.record(key_of(item))) is not None and not record.is_over:
            message = "no check waits for it any more"
            builder.record(key_of(item), record.ending(StepState.COMPLETED, builder.now, message))


def _advance(builder: DecisionBuilder, item: RenderedStep, waits: Iterable[Wait]) -> Progress:
    again, status = item.step.again, builder.status
    if again is None or not status.has_begun(key_of(item)) or item.skipped is not None or item.pending:
        return Progress.DONE
    if not status.is_over(key_of(item)):
        return advance(builder, item)
    since = [wait.since for wait in waits if wait.since and _is_about(wait, again, item)]
    if since and status.has_completed(key_of(item)) and _is_due(builder, item, again, min(since)):
        _begin(builder, item, again)
    return Progress.DONE


def _is_about(wait: Wait, again: Again, item: RenderedStep) -> bool:
    named = any((ref.kind, ref.name) == ("Node", item.step.node) for ref in wait.refs)
    return wait.check is not None and fnmatchcase(wait.check.id, again.checks) and (named or item.step.node is None)


def _is_due(builder: DecisionBuilder, item: RenderedStep, again: Again, held: datetime) -> bool:
    record, asked = builder.status.record(key_of(item)), _asked(builder, again)
    if asked and asked != (record.captured.get(_ASKED) if record else None):
        return True
    return builder.is_past(max(held, record.started) if record else held, again.every)


def _begin(builder: DecisionBuilder, item: RenderedStep, again: Again) -> None:
    record = builder.status.record(key_of(item))
    number = int(record.captured.get(ROUND, 1)) if record else 1
    captured = {ROUND: number + 1, _ASKED: _asked(builder, again)}
    builder.actions += [
        Remove(ref=ref_of(body), uid=uid(body)) for body in sorted(existing(builder, item), key=_made)[:-_KEPT]
    ]
    builder.record(key_of(item), StepRecord(state=StepState.STARTED, started=builder.now, captured=captured))


def _asked(builder: DecisionBuilder, again: Again) -> str:
    return str((look_up(builder.observation.plan, ("metadata", "annotations")) or {}).get(again.annotation, ""))


def _made(body: Body) -> tuple[str, str]:
    metadata = body["metadata"]
    return str(metadata.get("creationTimestamp") or ""), str(metadata["name"])
