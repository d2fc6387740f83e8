"""How a plan ends: what was done is undone where a step says so, what was borrowed goes back, what is ours goes.

On failure nothing that ran is deleted: it is the evidence. Fields that protect a half-upgraded cluster stay as their
phase says; our finalizer then stays too, so that deleting the plan gives them back.
"""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.decide.decision import Remove, RemoveTrace, SetFinalizer, Wait
from reconcile.decide.draft import LONG_TO_READ, Draft
from reconcile.decide.giving import give_back, give_orphans_back, orphaned, release
from reconcile.decide.made_for_nodes import groups_of_nodes, node_of
from reconcile.decide.phase import all_steps
from reconcile.decide.step import Progress, advance
from reconcile.objects import PLAN_LABEL, deletion_timestamp
from reconcile.probes.look import Group, Unseen
from reconcile.status.plan import PlanStatus, key_of
from reconcile.status.record import StepRecord, StepState
from renderer.model.path import ABSENT, look_up, path_name
from renderer.model.phase import Occasion, Owned
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
    left = [*_remove(draft, steps, occasion), *_remove_traces(draft, steps)]
    if occasion is Occasion.ABORT and released:
        left = [text for text in left if not _is_let_go(draft, text)]
    return released and not left


def _is_let_go(draft: Draft, text: str) -> bool:
    """A plan that is being deleted is not kept for ever by one object: what the plan owns is collected after it."""
    if draft.world.attended(max(draft.since, draft.status.last_end() or draft.since)) <= LONG_TO_READ:
        return False
    draft.event("Warning", "CleanupGivenUp", f"left behind: {text}")
    return True


def set_finalizer(draft: Draft, *, present: bool) -> None:
    """Decides to add or remove our finalizer, unless it is as wanted."""
    there = FINALIZER in (look_up(draft.world.plan, ("metadata", "finalizers")) or ())
    if there is not present:
        draft.actions.append(SetFinalizer(present=present))


def _undo(draft: Draft, steps: list[RenderedStep], occasion: Occasion) -> bool:
    done = True
    for item in steps:
        if item.undo is None:
            _say_what_is_not_undone(draft, item)
            continue
        if not draft.status.has_completed(key_of(item)):
            continue
        waits = len(draft.waits)
        progress = advance(draft, item.undo)
        if progress is Progress.BUSY and not _is_given_up(draft, draft.waits[waits:], item.undo, occasion):
            done = False
    return done


def _say_what_is_not_undone(draft: Draft, item: RenderedStep) -> None:
    """The plan cannot be rendered any more, and so nobody knows how its step is taken back."""
    undo = item.step.undo
    if undo is None or not draft.status.has_completed(key_of(item)):
        return
    key = (item.phase, undo.name, item.step.node)
    if draft.status.has_begun(key):
        return
    message = f"{item.phase}/{undo.name} is left undone: the plan cannot be rendered any more"
    draft.event("Warning", "UndoGivenUp", message)
    skipped = StepRecord(state=StepState.SKIPPED, started=draft.now, ended=draft.now, message=message)
    draft.record(key, skipped)


def _is_given_up(draft: Draft, waits: list[Wait], item: RenderedStep, occasion: Occasion) -> bool:
    """A plan that has failed, or is being deleted, is not held for ever by something that takes too long."""
    if occasion is Occasion.SUCCESS or not waits or not all(wait.slow for wait in waits):
        return False
    message = f"{item.id} is left undone: {waits[0].text}"
    draft.event("Warning", "UndoGivenUp", message)
    record = draft.status.record(key_of(item)) or StepRecord(state=StepState.STARTED, started=draft.now)
    draft.record(key_of(item), record.ending(StepState.SKIPPED, draft.now, message))
    return True


def _remove(draft: Draft, steps: list[RenderedStep], occasion: Occasion) -> Iterator[str]:
    """Deletes what is ours; answers what is still there."""
    live = {ref: draft.world.look.get(ref) for ref in owned_refs(draft.status, steps, occasion)}
    for group in groups_of_nodes(steps, occasion):
        found = draft.world.look.list(group)
        if isinstance(found, Unseen):
            yield _left(draft, f"{group.kind} objects made for nodes cannot be looked for: {found.why}")
        else:
            live |= {ref_of(body): body for body in found if node_of(body)}
    for ref, body in live.items():
        yield from _remove_one(draft, ref, body)


def _remove_one(draft: Draft, ref: Ref, live: Body | Unseen | None) -> Iterator[str]:
    if isinstance(live, Unseen):
        yield _left(draft, f"{ref} cannot be looked for: {live.why}", ref)
    elif live is not None and _is_ours(draft, live):
        if deletion_timestamp(live):
            yield _left(draft, _deletion_words(ref, live), ref)
        else:
            draft.actions.append(Remove(ref=ref, uid=str(live["metadata"]["uid"])))
            yield f"{ref} cannot be deleted"


def _deletion_words(ref: Ref, live: Body) -> str:
    finalizers = ", ".join(look_up(live, ("metadata", "finalizers")) or ())
    return f"{ref} is being deleted" + (f", kept by {finalizers}" if finalizers else "")


def _left(draft: Draft, text: str, *refs: Ref) -> str:
    draft.wait(text, limit=LONG_TO_READ, refs=refs)
    return text


def owned_refs(status: PlanStatus, steps: list[RenderedStep], occasion: Occasion) -> Iterator[Ref]:
    """The objects that go on an occasion: as rendered, and as recorded, be the step rendered otherwise by now."""
    for item in steps:
        specs = {spec.file for spec in item.step.manifests if isinstance(spec, Owned) and occasion in spec.cleanup}
        yield from (manifest.ref for manifest in item.manifests if manifest.spec.file in specs)
        staying = {manifest.ref for manifest in item.manifests if manifest.spec.file not in specs}
        record = status.record(key_of(item))
        if record is not None and specs:
            yield from (made.ref for made in record.objects if made.ref not in staying)


def _is_ours(draft: Draft, live: Body) -> bool:
    return bool(look_up(live, ("metadata", "labels", PLAN_LABEL)) == draft.world.rendered.plan)


def _remove_traces(draft: Draft, steps: list[RenderedStep]) -> Iterator[str]:
    for trace in dict.fromkeys(trace for item in steps if item.skipped is None for trace in item.step.traces):
        found = draft.world.look.list(Group(api_version=trace.api_version, kind=trace.kind))
        if isinstance(found, Unseen):
            text = f"{trace.kind} objects cannot be searched for {path_name(trace.path)}: {found.why}"
            yield _left(draft, text)
            continue
        bearers = [ref_of(body) for body in found if look_up(body, trace.path) is not ABSENT]
        draft.actions += [RemoveTrace(ref=ref, path=trace.path) for ref in bearers]
        yield from (f"{ref} has {path_name(trace.path)}" for ref in bearers)
