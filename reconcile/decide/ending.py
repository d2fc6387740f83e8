"""How a plan ends: what was done is undone where a step says so, what was borrowed goes back, what is ours goes.

On failure nothing that ran is deleted: it is the evidence. Fields that protect a half-upgraded cluster stay as their
phase says; our finalizer then stays too, so that deleting the plan gives them back.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.decide.decision import Remove, RemoveTrace, SetFinalizer, Wait
from reconcile.decide.draft import Draft
from reconcile.decide.giving import give_back, give_orphans_back, orphaned, release
from reconcile.decide.leavers import made_for_leavers
from reconcile.decide.phase import all_steps
from reconcile.decide.step import Progress, advance
from reconcile.objects import PLAN_LABEL
from reconcile.probes.look import Group, Unseen
from reconcile.status.plan import PlanStatus, key_of
from reconcile.status.record import StepRecord, StepState
from renderer.model.path import ABSENT, look_up, path_name
from renderer.model.phase import Occasion, Owned, Trace
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.rendered import RenderedStep

FINALIZER = "management.harvesterhci.io/upgradeplan-cleanup"


def end(draft: Draft, occasion: Occasion) -> bool:
    """Decides the next writes of an ending. Returns whether nothing is left to do."""
    steps = list(all_steps(draft.world.rendered.phases))
    if not _undo(draft, steps, occasion):
        return False
    settled = [give_back(draft, item, occasion) for item in reversed(steps)]
    settled.append(give_orphans_back(draft, orphaned(draft, steps), occasion))
    if occasion is Occasion.FAILURE:
        return all(settled)
    released = all(settled) and release(draft, steps)
    return all([released, _remove(draft, steps, occasion), _remove_traces(draft, steps)])


def set_finalizer(draft: Draft, *, present: bool) -> None:
    """Decides to add or remove our finalizer, unless it is as wanted."""
    there = FINALIZER in (look_up(draft.world.plan, ("metadata", "finalizers")) or ())
    if there is not present:
        draft.actions.append(SetFinalizer(present=present))


def _undo(draft: Draft, steps: list[RenderedStep], occasion: Occasion) -> bool:
    done = True
    for item in steps:
        if item.undo is None or not draft.status.has_completed(key_of(item)):
            continue
        waits = len(draft.waits)
        progress = advance(draft, item.undo)
        if progress is Progress.BUSY and not _is_given_up(draft, draft.waits[waits:], item.undo, occasion):
            done = False
    return done


def _is_given_up(draft: Draft, waits: list[Wait], item: RenderedStep, occasion: Occasion) -> bool:
    """A plan that has failed, or is being deleted, is not held for ever by something that takes too long."""
    if occasion is Occasion.SUCCESS or not waits or not all(wait.slow for wait in waits):
        return False
    message = f"{item.id} is left undone: {waits[0].text}"
    draft.event("Warning", "UndoGivenUp", message)
    record = draft.status.record(key_of(item)) or StepRecord(state=StepState.STARTED, started=draft.now)
    draft.record(key_of(item), record.ending(StepState.SKIPPED, draft.now, message))
    return True


def _remove(draft: Draft, steps: list[RenderedStep], occasion: Occasion) -> bool:
    """Deletes what is ours and still there."""
    live = {ref: draft.world.look.get(ref) for ref in owned_refs(draft.status, steps, occasion)}
    leavers = made_for_leavers(draft, steps, occasion)
    live |= {ref_of(body): body for body in leavers or ()}
    gone = [_remove_one(draft, ref, body) for ref, body in live.items()]
    return all(gone) and leavers is not None


def _remove_one(draft: Draft, ref: Ref, live: Body | Unseen | None) -> bool:
    """Whether it is gone, or is not ours."""
    if isinstance(live, Unseen):
        draft.waits.append(Wait(text=f"{ref} cannot be looked for: {live.why}", refs=(ref,)))
        return False
    if live is None or not _is_ours(draft, live):
        return True
    if look_up(live, ("metadata", "deletionTimestamp")):
        draft.waits.append(Wait(text=f"{ref} is being deleted", refs=(ref,)))
    else:
        draft.actions.append(Remove(ref=ref, uid=str(live["metadata"]["uid"])))
    return False


def owned_refs(status: PlanStatus, steps: list[RenderedStep], occasion: Occasion) -> Iterator[Ref]:
    """The objects that go on an occasion: as rendered, or as recorded where a step cannot be rendered any more."""
    for item in steps:
        specs = {spec.file for spec in item.step.manifests if isinstance(spec, Owned) and occasion in spec.cleanup}
        yield from (manifest.ref for manifest in item.manifests if manifest.spec.file in specs)
        record = status.record(key_of(item))
        if record is not None and specs and not item.manifests:
            yield from (made.ref for made in record.objects)


def _is_ours(draft: Draft, live: Body) -> bool:
    return bool(look_up(live, ("metadata", "labels", PLAN_LABEL)) == draft.world.rendered.plan)


def _remove_traces(draft: Draft, steps: list[RenderedStep]) -> bool:
    traces = dict.fromkeys(trace for item in steps if item.skipped is None for trace in item.step.traces)
    left = [trace for trace in traces if not _remove_trace(draft, trace)]
    return not left


def _remove_trace(draft: Draft, trace: Trace) -> bool:
    found = draft.world.look.list(Group(api_version=trace.api_version, kind=trace.kind))
    if isinstance(found, Unseen):
        text = f"{trace.kind} objects cannot be searched for {path_name(trace.path)}: {found.why}"
        draft.waits.append(Wait(text=text))
        return False
    bearers = [ref_of(body) for body in found if look_up(body, trace.path) is not ABSENT]
    draft.actions += [RemoveTrace(ref=ref, path=trace.path) for ref in bearers]
    return not bearers
