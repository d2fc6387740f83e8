"""What must be read before the next decision: every object, group and reading that it may look at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from reconcile.decide.captures import refs_by_template, renamed
from reconcile.decide.made_for_nodes import groups_of_nodes
from reconcile.decide.node_jobs import job_group
from reconcile.decide.phase import all_steps
from reconcile.decide.plan import is_over
from reconcile.objects import deletion_timestamp
from reconcile.probes.evaluate import group_of
from reconcile.probes.look import Group, Need, Scope
from reconcile.probes.needs import needs, target_needs
from reconcile.status.plan import PlanStatus, is_ending, key_of
from reconcile.status.record import StepRecord
from renderer.catalog.kinds import Kinds
from renderer.model.phase import Owned, Position
from renderer.model.probe import Probe
from renderer.model.ref import Body
from renderer.model.rendered import RenderedPhase, RenderedPlan, RenderedStep

_NODES = Group(api_version="v1", kind="Node")


def needs_of(plan: Body, status: PlanStatus, rendered: RenderedPlan, kinds: Kinds, scope: Scope) -> tuple[Need, ...]:
    """Each once. An ending looks at everything that the plan may have touched."""
    if is_over(status) and not deletion_timestamp(plan):
        return ()
    phases = rendered.phases
    ending = is_ending(plan, status)
    place = next((i for i, p in enumerate(phases) if status.phase in (p.phase.active, p.phase.completed)), -1)
    last = 0 <= place == len(phases) - 1
    found: list[Need] = []
    if ending or last:
        found += _of_ending(rendered, status)
    if not ending:
        found += _on_the_way(phases, place, status, scope)
    return tuple(dict.fromkeys(found))


def _on_the_way(phases: tuple[RenderedPhase, ...], place: int, status: PlanStatus, scope: Scope) -> Iterator[Need]:
    for phase in phases[: max(place, 0)]:
        yield from (manifest.ref for manifest in phase.manifests() if _is_maintained(manifest.spec))
    if place >= 0:
        if any(lane.others for lane in phases[place].phase.lanes):
            yield _NODES
        yield from _of_steps(phases[place].steps, status, scope)
        if any(item.step.joins for item in phases[place].steps):
            yield from groups_of_nodes(phases[place].steps)
    if place + 1 < len(phases):
        upcoming = phases[place + 1].steps
        yield from _of_steps((s for s in upcoming if s.step.position is Position.ENTER), status, scope)


def _of_steps(steps: Iterable[RenderedStep], status: PlanStatus, scope: Scope) -> Iterator[Need]:
    for item in steps:
        if item.skipped is not None or item.pending:
            continue
        if status.is_over(key_of(item)) and not item.step.repeat:
            yield from (m.ref for m in item.manifests if _is_maintained(m.spec) or m.borrowed)
            continue
        yield from _of_step(item, status.record(key_of(item)), scope)


def _of_step(item: RenderedStep, record: StepRecord | None, scope: Scope) -> Iterator[Need]:
    within = replace(scope, manifests=refs_by_template(item, record))
    for probe in _probes(item):
        yield from needs(probe, within)
    for capture in item.step.captures:
        yield from target_needs(capture.target, within)
    yield from (manifest.ref for manifest in item.manifests)
    yield from (then for _, then in renamed(item, record))
    yield from item.step.joins.by if item.step.joins else ()
    if (jobs := job_group(item)) is not None:
        yield group_of(jobs)


def _probes(item: RenderedStep) -> Iterator[Probe]:
    step = item.step
    if step.trigger:
        yield step.trigger.probe
    if step.keeps_lane:
        yield step.keeps_lane
    if step.joins:
        yield step.joins.done
    if step.skip_unless:
        yield step.skip_unless.probe
    yield from (gate.probe for gate in step.gates)


def _of_ending(rendered: RenderedPlan, status: PlanStatus) -> Iterator[Need]:
    for item in all_steps(rendered.phases):
        yield from (manifest.ref for manifest in item.manifests)
        if (record := status.record(key_of(item))) is not None:
            yield from (made.ref for made in record.objects)
        for trace in item.step.traces:
            yield Group(api_version=trace.api_version, kind=trace.kind)
    yield from groups_of_nodes(all_steps(rendered.phases))
    yield from (loan.ref for loan in status.loans)


def _is_maintained(spec: object) -> bool:
    return isinstance(spec, Owned) and spec.maintained
