"""Makes approvals: of the plan as the cluster renders it now, or as the files of a review render it.

A review knows inputs that a run reads later: the release, image lists. Its digests hold for the cluster if every phase
is the same when it is rendered from the cluster with those inputs; the loop compares again once it has read its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from reconcile.loop.deps import ReconcilerDeps
from reconcile.observe.facts import gather
from renderer.assemble import TemplateSet, assembly_of
from renderer.compare import differing
from renderer.documents import Inputs
from renderer.errors import ExitCode, Problem, Problems
from renderer.layout.credentials import redacted_problems
from renderer.model.path import path_name
from renderer.model.ref import Body
from renderer.model.rendered import Manifest, RenderedPhase, RenderedPlan, RenderedStep
from renderer.render.seal import Digests, digests, is_whole

_MOST_NAMED = 5
"""Differences that are named of one phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """`rendered` is what is approved. `sealed` are the phases that the cluster renders whole now; `later` those that
    are approved as well, with the inputs that the loop compares them by; `pending` those that are not approved, with
    the inputs that are not known yet."""

    rendered: RenderedPlan
    sealed: tuple[str, ...]
    later: Mapping[str, tuple[str, ...]]
    pending: Mapping[str, tuple[str, ...]]

    @property
    def digests(self) -> Digests:
        return digests(self.rendered)


def rendered_for_review(deps: ReconcilerDeps, plan: Body) -> RenderedPlan:
    """The plan rendered from the live cluster, with marks for what is captured at run time. Raises `Problems`."""
    return deps.rendering.sealed(plan, gather(deps.source, plan), {})


def approval_now(deps: ReconcilerDeps, plan: Body) -> Approval:
    """Of what the cluster renders whole now. Raises `Problems`."""
    return _approval(now := rendered_for_review(deps, plan), now)


def approval_of_review(deps: ReconcilerDeps, template_set: TemplateSet, plan: Body, inputs: Inputs) -> Approval:
    """Of what the files of a review render. Raises `Problems`: what cannot be rendered, and each phase that the cluster
    would render otherwise."""
    review = assembly_of(inputs, template_set).render()  # a retry changes names alone
    now = rendered_for_review(deps, plan)
    found = [*redacted_problems(review)] or [*_problems(review, _with_late_inputs(deps, plan, inputs))]
    if found:
        raise Problems(found, ExitCode.NO)
    return _approval(review, now)


def _approval(rendered: RenderedPlan, now: RenderedPlan) -> Approval:
    names = [phase.phase.name for phase in rendered.phases]
    whole = [name for name in names if is_whole(name, rendered)]
    missing = {phase.phase.name: _missing(phase) for phase in now.phases}
    return Approval(
        rendered=rendered,
        sealed=tuple(name for name in whole if not missing[name]),
        later={name: missing[name] for name in whole if missing[name]},
        pending={phase.phase.name: _missing(phase) for phase in rendered.phases if phase.phase.name not in whole},
    )


def _missing(phase: RenderedPhase) -> tuple[str, ...]:
    holders: list[RenderedPhase | RenderedStep] = [phase, *phase.steps]
    return tuple(sorted({item.input for holder in holders for item in holder.pending}))


def _with_late_inputs(deps: ReconcilerDeps, plan: Body, inputs: Inputs) -> RenderedPlan:
    """The plan from the live cluster, as if the run had read what the files have. What the cluster knows wins."""
    status = plan.get("status") or {}
    if inputs.release and not status.get("releaseMetadata"):
        plan = {**plan, "status": {**status, "releaseMetadata": dict(inputs.release.body)}}
    return deps.rendering.sealed(plan, gather(deps.source, plan), dict(inputs.facts.get("imageLists") or {}))


def _problems(review: RenderedPlan, live: RenderedPlan) -> Iterator[Problem]:
    """Of each phase in which the two differ. What is known on one side only is not compared."""
    others = {phase.phase.name: phase for phase in live.phases}
    for phase in review.phases:
        name, other = phase.phase.name, others[phase.phase.name]
        if is_whole(name, review) and is_whole(name, live) and phase.digest != other.digest:
            named = "; ".join(islice(_differences(phase, other), _MOST_NAMED))
            yield Problem(
                reason="ReviewDiffers",
                message=f"phase {name}: the cluster renders it otherwise than these files: {named}",
                remedy="render and review again from the cluster's present objects; `upgradeplan facts` collects them",
            )


def _differences(review: RenderedPhase, live: RenderedPhase) -> Iterator[str]:
    if review.skipped != live.skipped:
        yield f"{_course(review)} in the review, {_course(live)} now"
    before, after = ({step.id: step for step in phase.steps} for phase in (review, live))
    yield from (f"step {name} (added)" for name in after if name not in before)
    yield from (f"step {name} (removed)" for name in before if name not in after)
    for name in (name for name in after if name in before and before[name].digest != after[name].digest):
        objects = [*_differing_objects(before[name], after[name])]
        yield from objects or [f"step {name}: when it is skipped, or what it waits for"]


def _course(phase: RenderedPhase) -> str:
    return f"skipped ({phase.skipped})" if phase.skipped else "not skipped"


def _differing_objects(review: RenderedStep, live: RenderedStep) -> Iterator[str]:
    before, after = ({(item.file, item.ref): item for item in _manifests(step)} for step in (review, live))
    for place in dict.fromkeys((*before, *after)):
        if place in before and place in after:
            for path in differing(before[place].body, after[place].body):
                yield f"{place[1]} {path_name(path)}"
        else:
            yield f"{place[1]} ({'removed' if place in before else 'added'})"


def _manifests(step: RenderedStep) -> tuple[Manifest, ...]:
    return (*step.manifests, *(step.undo.manifests if step.undo else ()))
