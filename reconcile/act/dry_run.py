"""The asking half of a diff: reads every object of a phase and has the cluster try every manifest. Changes nothing.

One object's refusal is a result like any other, so that one run tells everything. What comes of the answers is
`reconcile.diff`'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from reconcile.act.applied import REFUSALS, Applied, ApplyResult, refused
from reconcile.act.apply import ObjectWriter
from reconcile.act.belonging import owned_by
from reconcile.act.permissions import Reviews, remedy_for
from reconcile.borrow.fields import fields_of
from reconcile.borrow.loan import Loan, Original
from reconcile.borrow.returns import occasions_of
from reconcile.borrow.strategies import take_out_option
from reconcile.borrow.take import Taking, goes_back, plan_take
from reconcile.cluster.errors import ClusterError, Conflict, Forbidden, NoSuchKind, NotFound
from reconcile.cluster.protocol import Permission
from reconcile.diff.trial import GoesBack, Operation, Trial
from renderer.errors import Problem
from renderer.model.manifest_spec import Borrowed
from renderer.model.path import ABSENT, Path
from renderer.model.path_rule import edited
from renderer.model.ref import Body, Ref
from renderer.model.rendered import Manifest, RenderedPhase, RenderedStep

_OPERATIONS = {
    ApplyResult.CREATED: Operation.CREATE,
    ApplyResult.CHANGED: Operation.CHANGE,
    ApplyResult.ADOPTED: Operation.ADOPT,
    ApplyResult.UNCHANGED: Operation.UNCHANGED,
    ApplyResult.TAKEN: Operation.BORROW,
    ApplyResult.WAITING: Operation.WAIT,
    ApplyResult.MISSING: Operation.UNCHANGED,
    ApplyResult.STALE: Operation.WAIT,
    ApplyResult.REFUSED: Operation.REFUSED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Newcomers:
    """The objects of a phase that a dry run cannot see yet: namespaces, and kinds by group and kind."""

    namespaces: frozenset[str]
    kinds: frozenset[tuple[str, str]]

    def bring(self, error: object) -> str | None:
        """Describes what was missing and comes in the same phase."""
        if isinstance(error, NotFound) and error.ref.kind == "Namespace" and error.ref.name in self.namespaces:
            return str(error.ref)
        if isinstance(error, NoSuchKind) and (error.kind.group, error.kind.kind) in self.kinds:
            return f"kind {error.kind}"
        return None


def try_phase(
    writer: ObjectWriter, phase: RenderedPhase, *, recorded: Mapping[Ref, str] | None = None, loans: Sequence[Loan] = ()
) -> tuple[Trial, ...]:
    """Tries every manifest of the phase's steps, in the order in which they are applied.

    `recorded` are the digests and `loans` the loans of the plan's status. Steps that undo run when the plan ends and
    are not tried. Raises Away and its like; whatever concerns one object is in its trial.
    """
    trier = _Trier(replace(writer, dry_run=True), newcomers_of(phase), recorded or {}, loans, Reviews(writer.cluster))
    return tuple(trier.trial(step, manifest) for step in phase.steps for manifest in step.manifests)


def newcomers_of(phase: RenderedPhase) -> Newcomers:
    bodies = [manifest.body for manifest in phase.manifests() if not manifest.borrowed]
    return Newcomers(
        namespaces=frozenset(str(body["metadata"]["name"]) for body in bodies if body["kind"] == "Namespace"),
        kinds=frozenset(
            (str(body["spec"]["group"]), str(body["spec"]["names"]["kind"]))
            for body in bodies
            if body["kind"] == "CustomResourceDefinition"
        ),
    )


@dataclass(frozen=True, slots=True)
class _Trier:
    """Tries one manifest after the other: two requests at most, one to read, one to try. What cannot be tried yet is
    asked for permission, which nobody would miss otherwise before it is needed."""

    writer: ObjectWriter
    newcomers: Newcomers
    recorded: Mapping[Ref, str]
    loans: Sequence[Loan]
    reviews: Reviews

    def trial(self, step: RenderedStep, manifest: Manifest) -> Trial:
        if manifest.run_time and not (manifest.borrowed and any(fields_of(without(manifest.body, manifest.run_time)))):
            return self._pending(step, manifest)
        try:
            live = self._read(manifest.ref)
        except REFUSALS as error:
            if not (manifest.borrowed and isinstance(error, NoSuchKind)) and not self.newcomers.bring(error):
                return self._told(step, manifest, None, refused(manifest.ref, manifest.file, error))
            live = None
        if isinstance(manifest.spec, Borrowed):
            return self._borrow(step, manifest, manifest.spec, live)
        applied = self.writer.own(manifest, live, recorded=self.recorded.get(manifest.ref))
        return self._told(step, manifest, live, applied)

    def _read(self, ref: Ref) -> Body | None:
        kind = self.writer.kinds.row(ref.api_version, ref.kind).kind
        try:
            return self.writer.cluster.get(kind, ref).body
        except NotFound:
            return None

    def _borrow(self, step: RenderedStep, manifest: Manifest, spec: Borrowed, live: Body | None) -> Trial:
        """Tries a borrowed manifest without the fields that are known at run time only."""
        body = without(manifest.body, manifest.run_time)
        plan = plan_take(body, spec, live, self.writer.schemas.quantities_of(body))
        held = [loan.original for loan in self.loans if _is_of(loan, step, manifest.ref)]
        if plan.patch is not None:
            applied = self.writer.take(replace(manifest, body=body, run_time=()), plan.patch)
            originals = {original.path: original for original in (*held, *plan.originals)}
            goes_back = (*_goes_back(body, spec, originals.values()), *_stays(body, spec))
            trial = self._told(step, manifest, live, applied)
            return replace(trial, because=trial.because or plan.because, goes_back=goes_back)
        return self._if_permitted(
            Trial(
                step=step.id,
                manifest=manifest,
                operation=_operation(plan.taking, manifest, held),
                live=live,
                because=plan.because,
                goes_back=tuple(_goes_back(body, spec, held)),
            )
        )

    def _pending(self, step: RenderedStep, manifest: Manifest) -> Trial:
        """A manifest that cannot even be tried. An owned one is shown, with marks in place of the values."""
        after = None if manifest.borrowed else owned_by(self.writer.plan, manifest)
        return self._if_permitted(Trial(step=step.id, manifest=manifest, operation=Operation.PENDING, after=after))

    def _if_permitted(self, trial: Trial) -> Trial:
        """A pending trial as it is, or refused for what is not granted; any other as it is."""
        missing = self._missing(trial.manifest) if trial.operation is Operation.PENDING else ()
        if not missing:
            return trial
        problem = Problem(
            reason="Forbidden",
            message=f"not allowed: {', '.join(map(str, missing))}",
            file=trial.manifest.file,
            remedy=remedy_for(missing),
        )
        return replace(trial, operation=Operation.REFUSED, problem=problem)

    def _told(self, step: RenderedStep, manifest: Manifest, live: Body | None, applied: Applied) -> Trial:
        operation, because, problem = _OPERATIONS[applied.outcome], applied.because, applied.problem
        comes = self.newcomers.bring(applied.error)
        if comes:
            operation, because, problem = Operation.CREATE, f"not tried: {comes} is created in this phase", None
        elif problem is not None:
            operation, because = self._refusal(applied.error), ""
            problem = self._explained(manifest, applied.error, problem)
        return Trial(
            step=step.id,
            manifest=manifest,
            operation=operation,
            live=live,
            after=self._after(operation, manifest, applied),
            because=because,
            problem=problem,
            warnings=applied.warnings,
        )

    def _explained(self, manifest: Manifest, error: ClusterError | None, problem: Problem) -> Problem:
        if not isinstance(error, Forbidden):
            return problem
        return replace(problem, remedy=remedy_for(self._missing(manifest) or (error.permission,)))

    def _missing(self, manifest: Manifest) -> tuple[Permission, ...]:
        return self.reviews.missing(self.writer.kinds.row(manifest.ref.api_version, manifest.ref.kind).kind, manifest)

    def _after(self, operation: Operation, manifest: Manifest, applied: Applied) -> Body | None:
        """A new object is shown as it is sent, without what a server fills in."""
        if operation is Operation.CREATE:
            return owned_by(self.writer.plan, manifest)
        return applied.body if operation in (Operation.CHANGE, Operation.ADOPT, Operation.BORROW) else None

    @staticmethod
    def _refusal(error: ClusterError | None) -> Operation:
        return Operation.CONFLICT if isinstance(error, Conflict) and error.claims else Operation.REFUSED


def without(body: Body, paths: Iterable[Path]) -> Body:
    """The body without the fields at these paths. A list that a path leads into only loses that item."""
    for path in paths:
        body = edited(body, path, lambda where, value: ABSENT)
    return body


def _operation(taking: Taking, manifest: Manifest, held: Sequence[Original]) -> Operation:
    """For a borrowed manifest that needs no write, as far as its values are known."""
    if taking is not Taking.SATISFIED:
        return Operation.SKIP if taking is Taking.SKIP else Operation.WAIT
    if manifest.run_time:
        return Operation.PENDING
    return Operation.RETURN_LATER if held else Operation.UNCHANGED


def _is_of(loan: Loan, step: RenderedStep, ref: Ref) -> bool:
    """True if the loan is the step's; its record calls the step as the step's id does, without the phase."""
    return loan.returned is None and (f"{loan.phase}/{loan.step}", loan.ref) == (step.id, ref)


def _goes_back(body: Body, spec: Borrowed, originals: Iterable[Original]) -> Iterator[GoesBack]:
    for original in originals:
        shared = take_out_option(spec, original.path)
        yield GoesBack(
            path=shared.path if shared else original.path,
            value=original.value,
            occasions=tuple(map(str, occasions_of(body, spec, original))),
            only_ours=shared is not None,
        )


def _stays(body: Body, spec: Borrowed) -> Iterator[GoesBack]:
    """The fields that are never given back."""
    for path, _ in fields_of(body):
        if not goes_back(spec, path):
            yield GoesBack(path=path, value=ABSENT, occasions=())
