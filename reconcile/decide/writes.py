"""The writes of a step: its own objects, the fields that it borrows, and what gives those back when they are due."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from reconcile.borrow.claim import release_of
from reconcile.borrow.loan import Loan, Original, loan_step, on_loan, settle
from reconcile.borrow.loan import record as record_loans
from reconcile.borrow.returns import has_drifted, plan_return
from reconcile.borrow.take import TakePlan, Taking, goes_back, plan_take
from reconcile.decide.annotations import note_originals
from reconcile.decide.builder import LONG_TO_READ, DecisionBuilder
from reconcile.decide.decision import Action, Apply, Borrow, Return, Wait
from reconcile.objects import FIELD_MANAGER
from reconcile.probes.look import ReadFailure
from reconcile.status.plan import key_of
from reconcile.status.record import StepState
from reconcile.status.times import time_text
from reconcile.values import satisfies
from renderer.model.manifest_spec import Borrowed, Occasion
from renderer.model.path import ABSENT, Path, look_up, path_name
from renderer.model.ref import Body, Ref
from renderer.model.rendered import Manifest, RenderedPhase, RenderedStep


def writes(builder: DecisionBuilder, item: RenderedStep) -> list[Action] | str:
    """The step's writes in the order of its manifests, with the originals of borrowed fields recorded in the builder.
    Originals that are noted in annotations as well are written there before all else. A text says why the step has to
    wait: it is written as a whole."""
    actions: list[Action] = []
    for manifest in item.manifests:
        live = builder.observation.look.get(manifest.ref)
        if not isinstance(manifest.spec, Borrowed):
            actions.append(Apply(manifest=manifest, step=key_of(item)))
            continue
        if isinstance(live, ReadFailure):
            return f"{manifest.ref} cannot be read: {live.why}"
        is_quantity = builder.observation.schemas.quantities_of(manifest.body)
        plan = plan_take(manifest.body, manifest.spec, live, is_quantity, answers=item.step.repeat)
        if plan.taking is Taking.WAIT:
            return plan.because
        inherited = [*_lent(builder, manifest, manifest.spec, plan), *evident(builder, manifest, manifest.spec, live)]
        originals = (*inherited, *_not_kept(builder, item, manifest, plan.originals))
        if plan.taking is not Taking.SKIP and originals:
            remember(builder, item, manifest, originals)
        if plan.taking is Taking.TAKE and plan.patch:
            actions.append(Borrow(manifest=manifest, patch=plan.patch, step=key_of(item)))
            _tell_left_overs(builder, manifest, plan)
    noted = note_originals(builder, item)
    return [noted] if noted else actions


def _tell_left_overs(builder: DecisionBuilder, manifest: Manifest, plan: TakePlan) -> None:
    for found in plan.left_overs:
        text = f"{manifest.ref}: {path_name(found.path)} was left over from another upgrade and is not given back"
        builder.event("Warning", "LeftOverNotReturned", f"{text}: {json.dumps(found.value, sort_keys=True)}")


def _not_kept(
    builder: DecisionBuilder, item: RenderedStep, manifest: Manifest, originals: Sequence[Original]
) -> list[Original]:
    """The originals but those of fields that an earlier attempt has borrowed: these go back to what was there first."""
    tried = builder.status.attempts_of(key_of(item))
    first = [loan for loan in _open(builder.status.loans, item) if tried and loan.ref == manifest.ref]
    return [found for found in originals if not any(_overlap(loan.original.path, found.path) for loan in first)]


def _lent(builder: DecisionBuilder, manifest: Manifest, spec: Borrowed, plan: TakePlan) -> list[Original]:
    """Originals that a failed plan recorded for the same fields: this plan returns them now."""
    lent = [item.loan for item in builder.observation.others.lent if item.loan.ref == manifest.ref]
    found = {loan.original.path: loan.original for loan in lent}
    known = {loan.original.path for loan in builder.status.loans if loan.ref == manifest.ref}
    known |= {original.path for original in plan.originals}
    return [
        original
        for path, original in found.items()
        if path not in known and goes_back(spec, path) and look_up(manifest.body, path) is not ABSENT
    ]


def evident(builder: DecisionBuilder, manifest: Manifest, spec: Borrowed, live: Body | None) -> list[Original]:
    """Originals from before the Harvester Upgrade Manager set the same values, if its bookkeeping proves that it did.
    It makes its preparations before it records the phase."""
    loans = (*builder.status.loans, *(item.loan for item in builder.observation.others.lent))
    known = [loan.original.path for loan in loans if loan.ref == manifest.ref]
    is_quantity = builder.observation.schemas.quantities_of(manifest.body)
    return [
        Original(path=found.path, value=found.value)
        for found in spec.originals_on_take_over
        if found.when is not None
        and not any(_overlap(path, found.path) for path in known)
        and satisfies(look_up(live, found.path), look_up(manifest.body, found.path), is_quantity, found.path)
    ]


def _overlap(one: Path, other: Path) -> bool:
    """True if they are the same, or one lies below the other."""
    return all(step == other_step for step, other_step in zip(one, other, strict=False))


def remember(builder: DecisionBuilder, item: RenderedStep, manifest: Manifest, originals: Sequence[Original]) -> None:
    loans = record_loans(
        builder.status.loans,
        originals,
        phase=item.phase,
        step=loan_step(item),
        ref=manifest.ref,
        taken=time_text(builder.now),
    )
    builder.status = builder.status.with_loans(loans)


def return_fields(builder: DecisionBuilder, item: RenderedStep, occasion: Occasion) -> bool:
    """Decides the writes that return one step's loans. Returns whether nothing is left to return on this occasion."""
    loans = _open(builder.status.loans, item)
    if not loans:
        return True
    manifests = {manifest.ref: manifest for manifest in item.manifests if manifest.borrowed}
    settled = True
    for ref in dict.fromkeys(loan.ref for loan in loans):
        manifest = manifests.get(ref)
        if manifest is None and not _goes_back_at_all(item, occasion):
            continue
        spec = manifest.spec if manifest and isinstance(manifest.spec, Borrowed) else _unknown(occasion)
        body = manifest.body if manifest else {}
        settled = _give(builder, ref, [loan for loan in loans if loan.ref == ref], body, spec, occasion) and settled
    return settled


def _goes_back_at_all(item: RenderedStep, occasion: Occasion) -> bool:
    """True if the step returns anything on this occasion that it borrows by templates that cannot be rendered now."""
    declared = [spec for spec in item.step.manifests if isinstance(spec, Borrowed)]
    return not declared or any(when is occasion for spec in declared for when, _ in spec.returns)


def changed_by_others(builder: DecisionBuilder, phase: RenderedPhase) -> Iterator[Wait]:
    """Borrowed fields that somebody else has changed: what they protect is no longer protected. A field that this plan
    is about to set, or gives back now, is recorded before it is written, and another value there is our own doing."""
    given_back = [loan for action in builder.actions if isinstance(action, Return) for loan in action.settled]
    quantities_of = builder.observation.schemas.quantities_of
    lent = {loan.step for loan in builder.status.loans if loan.returned is None and loan.phase == phase.phase.name}
    places = builder.cache.steps_of(phase).borrowing
    for item in (phase.steps[place] for place in sorted(places[step] for step in lent if step in places)):
        record = builder.status.record(key_of(item))
        if record is not None and record.state is StepState.STARTED:
            continue
        for loan in _open(builder.status.loans, item):
            manifest = next((found for found in item.manifests if found.ref == loan.ref), None)
            if manifest is None or not isinstance(manifest.spec, Borrowed) or loan in given_back:
                continue
            live, is_quantity = builder.observation.look.get(loan.ref), quantities_of(manifest.body)
            if live is None or isinstance(live, ReadFailure):
                continue
            if has_drifted(manifest.body, manifest.spec, live, loan.original, is_quantity):
                path = path_name(loan.original.path)
                text = f"{loan.ref} {path} was changed by somebody else after this plan had set it"
                since = builder.waiting_since(f"{loan.ref} {path}")
                yield Wait(text=text, step=item.id, node=item.step.node, since=since, slow=True, refs=(loan.ref,))


def orphaned(builder: DecisionBuilder, known: Iterable[RenderedStep]) -> tuple[Loan, ...]:
    """Loans of steps that are no longer rendered: a template was removed while the plan ran."""
    steps = {(item.phase, loan_step(item)) for item in known}
    return tuple(loan for loan in builder.status.loans if not loan.returned and (loan.phase, loan.step) not in steps)


def return_orphans(builder: DecisionBuilder, loans: Iterable[Loan], occasion: Occasion) -> bool:
    """As `return_fields`, for loans whose manifests are gone: everything that is still ours is returned."""
    settled = True
    found = list(loans)
    for ref in dict.fromkeys(loan.ref for loan in found):
        mine = [loan for loan in found if loan.ref == ref]
        settled = _give(builder, ref, mine, {}, _unknown(occasion), occasion) and settled
    return settled


def release(builder: DecisionBuilder, steps: Iterable[RenderedStep]) -> bool:
    """Removes our field ownership from objects that have no open loan: fields that are never returned leave it behind.
    Returns whether nothing is left to remove."""
    refs = dict.fromkeys(manifest.ref for item in steps for manifest in item.manifests if manifest.borrowed)
    claimed = [ref for ref in refs if _has_claim(builder, ref)]
    builder.actions += [Return(ref=ref, patch=None, settled=()) for ref in claimed]
    return not claimed


def _has_claim(builder: DecisionBuilder, ref: Ref) -> bool:
    live = builder.observation.look.get(ref)
    if live is None or isinstance(live, ReadFailure) or on_loan(builder.status.loans, ref):
        return False
    if any(item.active and item.loan.ref == ref for item in builder.observation.others.lent):
        return False
    return bool(release_of(live, FIELD_MANAGER))


def _give(
    builder: DecisionBuilder, ref: Ref, loans: list[Loan], body: Body, spec: Borrowed, occasion: Occasion
) -> bool:
    live = builder.observation.look.get(ref)
    if isinstance(live, ReadFailure):
        text = f"{ref} cannot be read, so nothing is returned yet: {live.why}"
        builder.wait(text, limit=LONG_TO_READ, unknown=True, refs=(ref,))
        return False
    loans = _still_ours(builder, loans)
    is_quantity = builder.observation.schemas.quantities_of(live or {})
    plan = plan_return(body, spec, live, loans, occasion, is_quantity)
    if not plan.settled and plan.patch is None:
        return True
    builder.actions.append(Return(ref=ref, patch=plan.patch, settled=plan.settled))
    for text in plan.left:
        builder.event("Normal", "FieldLeft", text)
    return False


def _still_ours(builder: DecisionBuilder, loans: list[Loan]) -> list[Loan]:
    """Without loans that an active plan has on the same fields: that plan needs them, and returns them."""
    active = [item for item in builder.observation.others.lent if item.active]
    theirs = {id(loan): item for loan in loans for item in active if _is_same(item.loan, loan)}
    for item in theirs.values():
        text = f"{item.loan.ref} {path_name(item.loan.original.path)} stays with {item.plan}, which returns it"
        builder.event("Normal", "FieldLeft", text)
    over = [loan for loan in loans if id(loan) in theirs]
    builder.status = builder.status.with_loans(settle(builder.status.loans, over, time_text(builder.now)))
    return [loan for loan in loans if id(loan) not in theirs]


def _is_same(left: Loan, right: Loan) -> bool:
    """True if two loans are of one field, or one lies within the other."""
    return left.ref == right.ref and _overlap(left.original.path, right.original.path)


def _open(loans: Iterable[Loan], item: RenderedStep) -> list[Loan]:
    phase, step = item.phase, loan_step(item)
    return [loan for loan in loans if loan.returned is None and loan.step == step and loan.phase == phase]


def _unknown(occasion: Occasion) -> Borrowed:
    return Borrowed(file="", returns=((occasion, ()),))
