"""Carries out the actions of a decision, each with one write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from reconcile.act.applied import WROTE, Applied
from reconcile.act.applied import ApplyResult as Written
from reconcile.act.apply import ObjectWriter
from reconcile.borrow.loan import Loan, on_loan
from reconcile.cluster.errors import Away, ClusterError, NotFound, Throttled, Unauthorized, text_of
from reconcile.decide.decision import (
    Action,
    ActionResult,
    Annotate,
    Apply,
    Borrow,
    Remove,
    RemoveTrace,
    Return,
    SetFinalizer,
)
from reconcile.decide.ending import FINALIZER
from reconcile.loop.deps import ReconcilerDeps
from reconcile.observe.snapshot import Snapshot
from reconcile.probes.look import ReadFailure
from renderer.model.ref import Body, Ref, ref_of
from renderer.redaction import Redactor

_DONE = (*WROTE, Written.UNCHANGED)
_ENDS_THE_ROUND = (Away, Throttled, Unauthorized)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutedAction(ActionResult):
    """`created`: the action made an object that was not there. `stale`: it has changed since it was read, which the
    next round will see."""

    created: bool = False
    stale: bool = False


class ActionExecutor:
    """Carries out the actions of one round. `plan` is as it is after those on itself."""

    def __init__(
        self, deps: ReconcilerDeps, writer: ObjectWriter, plan: Body, snapshot: Snapshot, loans: Iterable[Loan]
    ) -> None:
        self._deps = deps
        self._writer = writer
        self.plan = plan
        self._snapshot = snapshot
        self._loans = tuple(loans)

    def carry_out(self, action: Action) -> ExecutedAction:
        """Raises `Away` and its like; what the cluster says about one object is a result, without what is secret."""
        done = self._carried_out(action)
        return replace(done, problem=self._shown(done.problem, action)) if done.problem else done

    def _shown(self, problem: str, action: Action) -> str:
        """A server repeats what was sent."""
        redactor = Redactor(self._deps.rendering.catalog.redaction)
        if isinstance(action, (Apply, Borrow)):
            redactor.learn(action.manifest.body)
        return redactor.text(problem)

    def _carried_out(self, action: Action) -> ExecutedAction:
        try:
            return self._do(action)
        except _ENDS_THE_ROUND:
            raise
        except ClusterError as error:
            return ExecutedAction(action=action, problem=text_of(error.problem))

    def _do(self, action: Action) -> ExecutedAction:
        match action:
            case Apply():
                return self._result(action, self._writer.own(action.manifest, self._live(action.manifest.ref)))
            case Borrow():
                return self._result(action, self._writer.take(action.manifest, action.patch))
            case Return():
                return self._write_return(action)
            case Remove():
                return self._remove(action)
            case RemoveTrace():
                return self._remove_trace(action)
            case SetFinalizer():
                return self._set_finalizer(action)
            case Annotate():
                return self._patch_plan(action, {"annotations": dict(action.annotations)})

    def _live(self, ref: Ref) -> Body | None:
        live = self._snapshot.get(ref)
        return None if isinstance(live, ReadFailure) else live

    def _write_return(self, action: Return) -> ExecutedAction:
        left = [loan for loan in on_loan(self._loans, action.ref) if loan not in action.settled]
        live = self._live(action.ref)
        return self._result(action, self._writer.write_return(action.ref, live, action.patch, last=not left))

    def _remove(self, action: Remove) -> ExecutedAction:
        kind = self._deps.kinds.row(action.ref.api_version, action.ref.kind).kind
        try:
            self._deps.cluster.delete(kind, action.ref, uid=action.uid)
        except NotFound:  # it is in our copy only
            return ExecutedAction(action=action, stale=True)
        return ExecutedAction(action=action)

    def _remove_trace(self, action: RemoveTrace) -> ExecutedAction:
        kind = self._deps.kinds.row(action.ref.api_version, action.ref.kind).kind
        patch: Any = None
        for step in reversed(action.path):
            patch = {step: patch}
        self._deps.source.note(self._deps.cluster.patch(kind, action.ref, patch).body)
        return ExecutedAction(action=action)

    def _set_finalizer(self, action: SetFinalizer) -> ExecutedAction:
        finalizers = [item for item in self.plan["metadata"].get("finalizers") or () if item != FINALIZER]
        expected = [*finalizers, FINALIZER] if action.present else finalizers
        return self._patch_plan(action, {"finalizers": expected or None})

    def _patch_plan(self, action: Action, metadata: dict[str, Any]) -> ExecutedAction:
        """Only onto the plan as it was read."""
        patch = {"metadata": {"resourceVersion": self.plan["metadata"]["resourceVersion"], **metadata}}
        ref = ref_of(self.plan)
        self.plan = self._deps.cluster.patch(self._deps.kinds.row(ref.api_version, ref.kind).kind, ref, patch).body
        self._deps.source.note(self.plan)
        return ExecutedAction(action=action)

    def _result(self, action: Action, written: Applied) -> ExecutedAction:
        if written.body is not None and written.outcome in WROTE:
            self._deps.source.note(written.body)
        if written.outcome in _DONE:
            return ExecutedAction(action=action, created=written.outcome is Written.CREATED)
        stale = written.outcome in (Written.STALE, Written.WAITING)
        return ExecutedAction(action=action, problem=written.because, stale=stale)
