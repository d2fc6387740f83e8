"""Ends a plan: runs the undo steps, returns what was borrowed, and deletes what the plan owns.

After a failure nothing that ran is deleted: it is the evidence. Fields that protect a half-upgraded cluster stay if
their phase says so; the finalizer then stays too, so that deleting the plan returns them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from reconcile.decide.annotations import forget_originals
from reconcile.decide.builder import LONG_TO_READ, DecisionBuilder, WaitRequest
from reconcile.decide.decision import Remove, RemoveTrace, SetFinalizer, Wait
from reconcile.decide.owned import Leaving, found_in, groups_of_plan
from reconcile.decide.phase import all_steps
from reconcile.decide.probing import refs_by_template
from reconcile.decide.step import advance
from reconcile.decide.step_run import Progress
from reconcile.decide.writes import orphaned, release, return_fields, return_orphans
from reconcile.objects import deletion_timestamp, uid
from reconcile.probes.look import Group, ReadFailure
from reconcile.status.plan import key_of
from reconcile.status.record import StepRecord, StepState
from reconcile.status.times import time_of
from renderer.model.manifest_spec import Occasion
from renderer.model.path import ABSENT, look_up, path_name
from renderer.model.phase import FieldToRemove
from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.rendered import RenderedStep

FINALIZER = f"{PREFIX}upgradeplan-cleanup"


def end(builder: DecisionBuilder, occasion: Occasion) -> bool:
    """Decides the next writes of an ending. Returns whether nothing is left to do."""
    steps = list(all_steps(builder.observation.rendered.phases))
    if not _undo(builder, steps, occasion):
        return False
    settled = [return_fields(builder, item, occasion) for item in reversed(steps)]
    settled.append(return_orphans(builder, orphaned(builder, steps), occasion))
    settled.append(forget_originals(builder, steps))
    if occasion is Occasion.FAILURE:
        return all(settled)
    released = all(settled) and release(builder, steps)
    left = [*_remove(builder, steps, occasion), *_remove_traces(builder, steps)]
    if released:
        left = [text for text in left if not _is_let_go(builder, text)]
    return released and not left


def _is_let_go(builder: DecisionBuilder, text: str) -> bool:
    """One object does not block the end of a plan indefinitely, and the next plan with it: the garbage collector
    deletes it after the plan."""
    if not builder.is_past(max(builder.since, builder.status.last_end() or builder.since), LONG_TO_READ):
        return False
    builder.event("Warning", "CleanupGivenUp", f"left behind: {text}")
    return True


def set_finalizer(builder: DecisionBuilder, *, present: bool) -> None:
    """Decides to add or remove our finalizer, unless it is as expected."""
    there = FINALIZER in (look_up(builder.observation.plan, ("metadata", "finalizers")) or ())
    if there is not present:
        builder.actions.append(SetFinalizer(present=present))


def _undo(builder: DecisionBuilder, steps: list[RenderedStep], occasion: Occasion) -> bool:
    done = True
    for item in steps:
        if item.undo is None:
            _say_what_is_not_undone(builder, item)
            continue
        if not builder.status.has_completed(key_of(item)):
            continue
        waits = len(builder.waits)
        progress = advance(builder, item.undo)
        if progress is Progress.BUSY and not _is_given_up(builder, builder.waits[waits:], item.undo, occasion):
            done = False
    return done


def _say_what_is_not_undone(builder: DecisionBuilder, item: RenderedStep) -> None:
    """The plan can no longer be rendered, so how to undo the step is not known."""
    undo = item.step.undo
    if undo is None or not builder.status.has_completed(key_of(item)):
        return
    key = (item.phase, undo.name, item.step.node)
    if builder.status.has_begun(key):
        return
    message = f"{item.phase}/{undo.name} was not undone: the plan can no longer be rendered"
    builder.event("Warning", "UndoGivenUp", message)
    skipped = StepRecord(state=StepState.SKIPPED, started=builder.now, ended=builder.now, message=message)
    builder.record(key, skipped)


def _is_given_up(builder: DecisionBuilder, waits: list[Wait], item: RenderedStep, occasion: Occasion) -> bool:
    """An undo step that takes too long does not block a failed or deleted plan indefinitely."""
    if occasion is Occasion.SUCCESS or not waits or not all(wait.slow for wait in waits):
        return False
    message = f"{item.id} was not undone: {waits[0].text}"
    builder.event("Warning", "UndoGivenUp", message)
    record = builder.status.record(key_of(item)) or StepRecord(state=StepState.STARTED, started=builder.now)
    builder.record(key_of(item), record.ending(StepState.SKIPPED, builder.now, message))
    return True


def _remove(builder: DecisionBuilder, steps: list[RenderedStep], occasion: Occasion) -> Iterator[str]:
    """Deletes what the plan owns; yields what is still there."""
    leaving = Leaving(builder, steps, occasion)
    going: list[Body] = []
    for group in groups_of_plan(builder, steps):
        found = found_in(builder, group, leaving.known(group))
        if isinstance(found, ReadFailure):
            text = f"{group.kind} objects of the plan cannot be listed: {found.why}"
            yield _left(builder, text, *leaving.known(group))
        else:
            going += [body for body in found if body in leaving]
    for body in sorted(going, key=leaving.place_of):
        yield _remove_one(builder, ref_of(body), body)


def _remove_one(builder: DecisionBuilder, ref: Ref, live: Body) -> str:
    if began := deletion_timestamp(live):
        return _left(builder, _describe_deletion(ref, live), ref, since=time_of(began))
    builder.actions.append(Remove(ref=ref, uid=uid(live)))
    return f"{ref} cannot be deleted"


def _describe_deletion(ref: Ref, live: Body) -> str:
    finalizers = ", ".join(look_up(live, ("metadata", "finalizers")) or ())
    return f"{ref} is being deleted" + (f", waiting for finalizer {finalizers}" if finalizers else "")


def _left(builder: DecisionBuilder, text: str, *refs: Ref, since: datetime | None = None) -> str:
    """Adds the wait for something that is deleted since then, or since the plan began to end."""
    start = max(since or builder.since, builder.since)
    builder.ask(WaitRequest(text=text, since=start, counted=builder.since, limit=LONG_TO_READ, refs=refs))
    return text


def _remove_traces(builder: DecisionBuilder, steps: list[RenderedStep]) -> Iterator[str]:
    for trace in dict.fromkeys(trace for item in steps if item.skipped is None for trace in _traces(builder, item)):
        found = builder.observation.look.list(Group(api_version=trace.api_version, kind=trace.kind))
        if isinstance(found, ReadFailure):
            text = f"{trace.kind} objects cannot be listed, to remove {path_name(trace.path)}: {found.why}"
            yield _left(builder, text)
            continue
        bearers = [ref_of(body) for body in found if look_up(body, trace.path) is not ABSENT]
        builder.actions += [RemoveTrace(ref=ref, path=trace.path) for ref in bearers]
        yield from (f"{ref} has {path_name(trace.path)}" for ref in bearers)


def _traces(builder: DecisionBuilder, item: RenderedStep) -> Iterator[FieldToRemove]:
    """The fields of the objects as they are rendered now, and of those that were made under another name."""
    recorded, now = builder.status.objects_of(key_of(item)), refs_by_template(item)
    for trace in item.step.remove_fields:
        yield trace
        for made in recorded:
            for ref in now.get(made.template, ()):
                yield replace(trace, path=tuple(_renamed(part, ref.name, made.ref.name) for part in trace.path))


def _renamed(part: str | int, now: str, then: str) -> str | int:
    return part.replace(now, then) if isinstance(part, str) else part
