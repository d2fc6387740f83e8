"""The writes that a step has left to do: its own objects, and the fields that it borrows."""

from __future__ import annotations

from reconcile.borrow.loan import record as record_loans
from reconcile.borrow.take import TakePlan, Taking, plan_take
from reconcile.decide.decision import Action, Apply, Borrow
from reconcile.decide.draft import Draft
from reconcile.decide.giving import loan_step
from reconcile.probes.look import Unseen
from reconcile.status.plan import key_of
from reconcile.status.times import time_text
from renderer.model.phase import Borrowed
from renderer.model.rendered import Manifest, RenderedStep


def writes(draft: Draft, item: RenderedStep) -> list[Action] | str:
    """In the order of the manifests, the originals of what is borrowed recorded in the draft; or why one of them has to
    wait, since a step is written as a whole."""
    actions: list[Action] = []
    for manifest in item.manifests:
        if not isinstance(manifest.spec, Borrowed):
            actions.append(Apply(manifest=manifest, step=key_of(item)))
            continue
        live = draft.world.look.get(manifest.ref)
        if isinstance(live, Unseen):
            return f"{manifest.ref} cannot be read: {live.why}"
        plan = plan_take(manifest.body, manifest.spec, live)
        if plan.taking is Taking.WAIT:
            return plan.because
        if plan.taking is Taking.TAKE and plan.patch:
            _remember(draft, item, manifest, plan)
            actions.append(Borrow(manifest=manifest, patch=plan.patch, step=key_of(item)))
    return actions


def _remember(draft: Draft, item: RenderedStep, manifest: Manifest, plan: TakePlan) -> None:
    loans = record_loans(
        draft.status.loans,
        plan.originals,
        phase=item.phase,
        step=loan_step(item),
        ref=manifest.ref,
        taken=time_text(draft.now),
    )
    draft.status = draft.status.with_loans(loans)
