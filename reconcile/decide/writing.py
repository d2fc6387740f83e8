"""The writes that a step has left to do: its own objects, and the fields that it borrows."""

from __future__ import annotations

from collections.abc import Sequence

from reconcile.borrow.loan import Original
from reconcile.borrow.loan import record as record_loans
from reconcile.borrow.take import TakePlan, Taking, goes_back, plan_take
from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.decision import Action, Apply, Borrow
from reconcile.decide.returns import loan_step
from reconcile.probes.look import ReadFailure
from reconcile.status.plan import key_of
from reconcile.status.times import time_text
from reconcile.values import satisfies
from renderer.model.path import ABSENT, Path, look_up
from renderer.model.phase import Borrowed
from renderer.model.ref import Body
from renderer.model.rendered import Manifest, RenderedStep


def writes(builder: DecisionBuilder, item: RenderedStep) -> list[Action] | str:
    """In the order of the manifests, the originals of what is borrowed recorded in the draft; or why one of them has to
    wait, since a step is written as a whole."""
    actions: list[Action] = []
    for manifest in item.manifests:
        live = builder.observation.look.get(manifest.ref)
        if not isinstance(manifest.spec, Borrowed):
            actions.append(Apply(manifest=manifest, step=key_of(item)))
            continue
        if isinstance(live, ReadFailure):
            return f"{manifest.ref} cannot be read: {live.why}"
        is_quantity = builder.observation.schemas.quantities_of(manifest.body)
        plan = plan_take(manifest.body, manifest.spec, live, is_quantity)
        if plan.taking is Taking.WAIT:
            return plan.because
        inherited = [*_lent(builder, manifest, manifest.spec, plan), *evident(builder, manifest, manifest.spec, live)]
        if plan.taking is not Taking.SKIP and (inherited or plan.originals):
            remember(builder, item, manifest, (*inherited, *plan.originals))
        if plan.taking is Taking.TAKE and plan.patch:
            actions.append(Borrow(manifest=manifest, patch=plan.patch, step=key_of(item)))
    return actions


def _lent(builder: DecisionBuilder, manifest: Manifest, spec: Borrowed, plan: TakePlan) -> list[Original]:
    """What stood there before a plan that has failed put there what we want as well: it is ours to give back now."""
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
    """What stood there before the Harvester Upgrade Manager put there what we want as well, where something shows that
    it was that one: it had begun what comes before the phase, and left no word of it but its bookkeeping."""
    loans = (*builder.status.loans, *(item.loan for item in builder.observation.others.lent))
    known = [loan.original.path for loan in loans if loan.ref == manifest.ref]
    is_quantity = builder.observation.schemas.quantities_of(manifest.body)
    return [
        Original(path=found.path, value=found.value)
        for found in spec.inherits
        if found.when is not None
        and not any(_overlap(path, found.path) for path in known)
        and satisfies(look_up(live, found.path), look_up(manifest.body, found.path), is_quantity, found.path)
    ]


def _overlap(one: Path, other: Path) -> bool:
    """Whether they are the same, or one lies below the other."""
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
