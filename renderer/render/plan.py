"""Renders all phases of a plan.

A phase or step whose inputs are not all given is pending, not wrong: the rest is rendered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from renderer.catalog.load import Catalog, Declared
from renderer.context.build import Context
from renderer.digest import digest_of
from renderer.errors import Problem, Problems
from renderer.manifest_rules import image_problems, plan_problems
from renderer.model.phase import Step
from renderer.model.rendered import Manifest, RenderedPhase, RenderedPlan, RenderedStep
from renderer.render.cached_step import CachedStepRenderer
from renderer.render.declaration import DeclarationFiller
from renderer.render.last_rendering import LastRendering, Whole
from renderer.render.manifest import DigestOf
from renderer.render.recorded import NOTHING_RECORDED, Recorded
from renderer.render.step import StepRenderer, missing
from renderer.templating import Templates


def render(
    catalog: Catalog,
    templates: Templates,
    context: Context,
    recorded: Recorded = NOTHING_RECORDED,
    kept: LastRendering | None = None,
    *,
    ending: bool = False,
    lenient: bool = False,
    digest: DigestOf = digest_of,
) -> RenderedPlan:
    """`recorded` is what a run has done so far; if it is `ending`, a step that is skipped or pending has the manifests
    that it would have made. `kept` has the steps of earlier renderings, and gets those of this one. `digest` gives the
    digests of manifests.

    Raises `Problems` with everything that is wrong in any phase. If `lenient`, the plan has the problems, and steps
    that cannot be rendered have no manifests: what has begun can still be watched and taken back.
    """
    problems: list[Problem] = []
    templates.begin()
    renderer = StepRenderer(
        kinds=catalog.kinds,
        node_states=catalog.node_states,
        templates=templates,
        declaration=DeclarationFiller(templates=templates),
        context=context,
        recorded=recorded,
        ending=ending,
        problems=problems,
        digest=digest,
    )
    earlier = (
        None if kept is None else CachedStepRenderer(renderer=renderer, within=kept.within(context, ending), kept=kept)
    )
    phases = tuple(_phase(renderer, earlier, declared) for declared in catalog.phases)
    whole = _whole(phases, catalog, kept)
    found = [*problems, *whole.images_found] or [*whole.found]
    if found and not lenient:
        raise Problems(found)
    plan = str(context.names["plan"]["metadata"]["name"])
    return RenderedPlan(
        plan=plan,
        nodes=tuple(node["name"] for node in context.nodes),
        node_states=catalog.node_states,
        phases=phases,
        images=whole.images,
        digest=digest_of([plan, *(phase.digest for phase in phases)]),
        problems=tuple(dict.fromkeys(found)),
    )


def _whole(phases: Sequence[RenderedPhase], catalog: Catalog, kept: LastRendering | None) -> Whole:
    """All manifests of a plan held against each other; as it came out before where they are the same."""
    if kept is None:
        return _judged(tuple(manifest for phase in phases for manifest in phase.manifests()), catalog)
    outlines = tuple(kept.outline_of(phase) for phase in phases)
    found = kept.find_whole(outlines)
    return found or kept.keep_whole(outlines, _judged(tuple(it for outline in outlines for it in outline), catalog))


def _judged(manifests: Sequence[Manifest], catalog: Catalog) -> Whole:
    return Whole(
        images=tuple(sorted({image for manifest in manifests for image in manifest.images})),
        images_found=tuple(image_problems(manifests)),
        found=tuple(plan_problems(manifests, catalog.kinds)),
    )


def _phase(renderer: StepRenderer, earlier: CachedStepRenderer | None, declared: Declared) -> RenderedPhase:
    """A phase; one of which nothing has changed since an earlier rendering is taken from there."""
    if earlier is None:
        return _rendered_phase(renderer, None, declared)
    name, recorded = declared.phase.name, renderer.recorded.of(declared.phase.name)
    if found := earlier.kept.find_phase(name, earlier.common, recorded):
        rendered, known = found
        renderer.problems.extend(known)
        return rendered
    problems = len(renderer.problems)
    rendered = _rendered_phase(renderer, earlier, declared)
    earlier.kept.keep_phase(earlier.common, recorded, rendered, tuple(renderer.problems[problems:]))
    return rendered


def _rendered_phase(renderer: StepRenderer, earlier: CachedStepRenderer | None, declared: Declared) -> RenderedPhase:
    phase = declared.phase
    begun = _is_under_way(renderer, declared)
    pending = () if begun else missing(renderer.context, phase.requires)
    reason = None if pending or begun else renderer.skip_reason(phase.skip_when, declared)
    idle = pending or reason is not None
    steps = () if idle else _others(earlier, declared) or tuple(_steps(renderer, earlier, declared))
    return RenderedPhase(
        phase=phase,
        steps=steps,
        shapes=() if idle else _shapes(renderer, earlier, declared),
        skipped=reason,
        pending=pending,
        digest=digest_of([phase.name, phase.number, phase.active, reason, [step.digest for step in steps]]),
    )


def _is_under_way(renderer: StepRenderer, declared: Declared) -> bool:
    """True if one of the phase's steps has begun: then the phase is not skipped any more."""
    nodes = [node["name"] for node in renderer.context.nodes]
    under_way, phase = renderer.recorded.is_under_way, declared.phase
    places = ((step.name, node) for step in phase.steps for node in (nodes if step.for_each else (None,)))
    return any(under_way(phase.name, *place) for place in places)


def _others(earlier: CachedStepRenderer | None, declared: Declared) -> tuple[RenderedStep, ...] | None:
    """The steps of the last rendering, with those rendered anew of which something else is recorded; None where nothing
    is known of them."""
    known = earlier.kept_steps(declared.phase.name) if earlier else None
    if earlier is None or known is None:
        return None
    before, changed = known
    nodes, steps, place = earlier.renderer.context.nodes, list(before), 0
    numbers = [number for number, node in enumerate(nodes) if node["name"] in changed]
    for step, raw in _declared_steps(declared):
        for number in numbers if step.for_each else range(None in changed):
            steps[place + number] = earlier.step(declared, step, raw, nodes[number] if step.for_each else None)
        place += len(nodes) if step.for_each else 1
    return tuple(steps)


def _steps(renderer: StepRenderer, earlier: CachedStepRenderer | None, declared: Declared) -> Iterator[RenderedStep]:
    for step, raw in _declared_steps(declared):
        for node in renderer.context.nodes if step.for_each else (None,):
            yield (
                earlier.step(declared, step, raw, node) if earlier else renderer.step(declared, step, raw, node, set())
            )


def _shapes(renderer: StepRenderer, earlier: CachedStepRenderer | None, declared: Declared) -> tuple[Step, ...]:
    name, problems = declared.phase.name, len(renderer.problems)
    if earlier and (found := earlier.kept.find_shapes(name, earlier.common)) is not None:
        known, refused = found
        renderer.problems.extend(refused)
        return known
    shapes = tuple(
        renderer.shape(declared, step, raw)
        for step, raw in _declared_steps(declared)
        if step.for_each and not missing(renderer.context, step.requires)
    )
    if earlier:
        earlier.kept.keep_shapes(name, earlier.common, shapes, tuple(renderer.problems[problems:]))
    return shapes


def _declared_steps(declared: Declared) -> Iterator[tuple[Step, Mapping[str, Any]]]:
    raws = {raw["name"]: raw for position in ("enter", "steps", "leave") for raw in declared.raw.get(position, ())}
    for step in declared.phase.steps:
        yield step, raws[step.name]
