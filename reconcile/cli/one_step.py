"""The writes of one step that is taken by hand: decided and recorded as the loop does it, tried until each is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from reconcile.act.applied import Applied, ApplyResult
from reconcile.act.dry_run import newcomers_of
from reconcile.act.status import write_status
from reconcile.borrow.fields import Patch
from reconcile.borrow.take import plan_take
from reconcile.cli.live import Live
from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.decision import Action, Annotate, Borrow
from reconcile.decide.ending import set_finalizer
from reconcile.decide.observation import Observation, OtherUpgrades
from reconcile.decide.writes import writes
from reconcile.loop.active_plan import lent_by_others
from reconcile.loop.executor import ActionExecutor
from reconcile.loop.plan_round import PLANS
from reconcile.objects import deletion_timestamp
from reconcile.observe.facts import Unreadable, unreadable
from reconcile.observe.snapshot import Snapshot, take
from reconcile.probes.look import ReadFailure
from reconcile.status.plan_body import status_of
from renderer.errors import ExitCode, Problems, problem
from renderer.model.manifest_spec import Borrowed
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.rendered import Manifest, RenderedPhase, RenderedStep

_T = TypeVar("_T")

_AGAIN = (ApplyResult.WAITING, ApplyResult.STALE)


class Stepper:
    """`reported` is called once for each manifest, when nothing is left to do for it."""

    def __init__(
        self, live: Live, phase: RenderedPhase, step: RenderedStep, reported: Callable[[Applied], None]
    ) -> None:
        self._live = live
        self._step = step
        self._reported = reported
        self._newcomers = newcomers_of(phase)
        self._done: set[Ref] = set()

    def write(self) -> Sequence[str]:
        """Makes the writes that can be made now. Says what keeps the rest; nothing once all are made.

        Raises `Problems` for what the cluster refuses, and where nothing can be recorded.
        """
        plan, seen = self._plan(), self._seen()
        builder = self._draft(plan, seen)
        actions = writes(builder, self._step)
        noted = [] if isinstance(actions, str) else [action for action in actions if isinstance(action, Annotate)]
        kept = actions if isinstance(actions, str) else self._record(builder, plan, seen, noted)
        if kept:
            return (kept,)
        if noted:
            return self.write()
        patches = {action.manifest.ref: action.patch for action in actions if isinstance(action, Borrow)}
        for manifest in self._step.manifests:
            if manifest.ref not in self._done:
                applied = self._carry_out(manifest, seen, patches.get(manifest.ref))
                if kept := self._why_again(applied):
                    return (kept,)
                self._done.add(manifest.ref)
                self._reported(applied)
        return ()

    def _plan(self) -> Body:
        """As it is now: it may have changed since the last try."""
        ref = ref_of(self._live.plan)
        plan = readable(ref, self._live.parts.source.get(ref))
        if plan is None or deletion_timestamp(plan):
            what = "not found" if plan is None else "is being deleted"
            raise problem("NoSuchPlan", f"{ref} {what}", exit_code=ExitCode.CLUSTER)
        return plan

    def _seen(self) -> Snapshot:
        parts = self._live.parts
        seen = take([manifest.ref for manifest in self._step.manifests], parts.source, parts.readings)
        for ref, found in seen.objects.items():
            readable(ref, found)
        return seen

    def _draft(self, plan: Body, seen: Snapshot) -> DecisionBuilder:
        parts = self._live.parts
        plans = readable(ref_of(plan), parts.source.list(PLANS))
        observation = Observation(
            plan=plan,
            rendered=self._live.rendered,
            kinds=parts.kinds,
            schemas=parts.schemas,
            look=seen,
            now=parts.now(),
            attended=parts.attended,
            others=OtherUpgrades(lent=lent_by_others(plan, plans)),
            redactor=parts.rendering.redactor,
        )
        return DecisionBuilder(observation, status_of(plan))

    def _record(self, builder: DecisionBuilder, plan: Body, seen: Snapshot, noted: Sequence[Action]) -> str | None:
        """Puts what is borrowed into the plan's status and annotations, and holds the plan until that is given back.
        Says what keeps it from that."""
        parts = self._live.parts
        written = write_status(parts.cluster, parts.kinds, plan, status_of(plan), builder.status)
        if written is None:
            return f"{ref_of(plan)} has changed since it was read"
        if not any(loan.returned is None for loan in builder.status.loans):
            return None
        builder = DecisionBuilder(replace(builder.observation, plan=written), builder.status)
        set_finalizer(builder, present=True)
        executor = ActionExecutor(parts, self._live.writer(), written, seen, builder.status.loans)
        results = map(executor.carry_out, (*builder.actions, *noted))
        return next((result.problem for result in results if result.problem), None)

    def _carry_out(self, manifest: Manifest, seen: Snapshot, patch: Patch | None) -> Applied:
        live = readable(manifest.ref, seen.get(manifest.ref))
        if not isinstance(manifest.spec, Borrowed):
            return self._live.writer().own(manifest, live)
        if patch is not None:
            return self._live.writer().take(manifest, patch)
        is_quantity = self._live.parts.schemas.quantities_of(manifest.body)
        because = plan_take(manifest.body, manifest.spec, live, is_quantity).because
        return Applied(ref=manifest.ref, file=manifest.file, outcome=ApplyResult.UNCHANGED, because=because)

    def _why_again(self, applied: Applied) -> str | None:
        """None where nothing is left to do about the manifest."""
        if comes := self._newcomers.bring(applied.error):
            return f"{applied.ref} cannot be written before {comes} exists"
        if applied.outcome in _AGAIN:
            return applied.because
        if applied.problem is not None:
            raise Problems([applied.problem], ExitCode.CLUSTER)
        return None


def readable(ref: Ref, found: _T | ReadFailure) -> _T:
    """Raises `Unreadable`."""
    if isinstance(found, ReadFailure):
        raise Unreadable([unreadable(str(ref), found)])
    return found
