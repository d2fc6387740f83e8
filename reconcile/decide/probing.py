"""Evaluates what a step looks at: whether it is asked for, then its gates and the Jobs that others make for it, until
it has ended. Starts nothing and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from reconcile.decide.builder import DecisionBuilder
from reconcile.objects import NODE_PLAN_LABEL, Condition, conditions, label, selects
from reconcile.probes.evaluate import evaluate, group_of, present_ref, summarize
from reconcile.probes.look import Group, ProbeContext, ReadFailure
from reconcile.probes.verdict import ProbeResult, Verdict, gate_verdict
from reconcile.status.plan import PlanStatus, key_of
from reconcile.status.record import StepRecord
from reconcile.status.times import time_of
from renderer.catalog.verify import ROUND
from renderer.context.nodes import unknown_plan
from renderer.model.path import ABSENT, look_up
from renderer.model.probe import EveryTarget, Gate, ObjectTarget
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.rendered import RenderedStep

_NODES = Group(api_version="v1", kind="Node")
NO_MACHINE = "no Machine in fleet-local refers to node"
"""The beginning of a wait where Rancher has no way to request a node."""


def missing_object(item: RenderedStep) -> str | None:
    """Explains why the step cannot be requested: its node has no machine-plan Secret for Rancher to write to. None if
    it has."""
    target, node = item.step.trigger.probe.target if item.step.trigger else None, item.step.node
    if node and isinstance(target, ObjectTarget) and target.ref.name == unknown_plan(node):
        return f"{NO_MACHINE} {node}, or it has no machine-plan Secret"
    return None


def is_asked_again(builder: DecisionBuilder, item: RenderedStep) -> bool:
    """True if a repeating step is requested again, with another value than it has answered."""
    step = item.step
    if not step.repeat or step.trigger is None or item.skipped is not None or item.pending:
        return False
    return evaluate(step.trigger.probe, builder.observation.look, scope_of(builder, item)).passed


def is_withdrawn(builder: DecisionBuilder, item: RenderedStep, record: StepRecord) -> bool:
    """True if a repeating step has nothing to answer any more: the object is there, and the request that the step
    has captured is not. Whoever has asked takes the answer away with the request; one that is given then would be
    taken for the answer to the next request, in another upgrade, which may have the same value."""
    trigger = item.step.trigger
    if not item.step.repeat or trigger is None or trigger.capture not in record.captured:
        return False
    look, target = builder.observation.look, trigger.probe.target
    is_there = isinstance(target, ObjectTarget) and look.get(present_ref(target, look)) is not None
    verdict = evaluate(trigger.probe, look, scope_of(builder, item))
    return is_there and verdict.outcome is not ProbeResult.UNKNOWN and verdict.seen is ABSENT


def is_reconsidered(status: PlanStatus, item: RenderedStep) -> bool:
    """True if the step was skipped, which is not final, and its conditions do not skip it any more."""
    if not item.step.reconsider or item.skipped is not None or item.pending:
        return False
    return status.is_over(key_of(item)) and not status.has_completed(key_of(item))


def counts_rounds(status: PlanStatus, item: RenderedStep) -> bool:
    """True if the step was carried out again, as its record alone can tell."""
    record = status.record(key_of(item))
    return item.step.again is not None and record is not None and ROUND in record.captured


def is_started(status: PlanStatus, item: RenderedStep) -> bool:
    """True if the step is under way."""
    record = status.record(key_of(item))
    return record is not None and not record.is_over and not record.failed


def scope_of(builder: DecisionBuilder, item: RenderedStep, captured: Mapping[str, Any] | None = None) -> ProbeContext:
    """The scope in which the step's probes are evaluated; `captured` overrides what the status has."""
    known = builder.status.captured(item.phase, item.step.node)
    return ProbeContext(
        kinds=builder.observation.kinds,
        schemas=builder.observation.schemas,
        now=builder.now,
        redactor=builder.observation.redactor,
        manifests=refs_by_template(item, builder.status.record(key_of(item))),
        captured={**known, **(captured or {})},
    )


def refs_by_template(item: RenderedStep, record: StepRecord | None = None) -> dict[str, tuple[Ref, ...]]:
    """The objects of each template: as recorded; before that, and for borrowed ones, as rendered now."""
    refs: dict[str, tuple[Ref, ...]] = {}
    for manifest in item.manifests:
        refs[manifest.spec.file] = (*refs.get(manifest.spec.file, ()), manifest.ref)
    made = record.objects if record else ()
    return {**refs, **{found.template: record.made_by(found.template) for found in made if record and found.template}}


def renamed(item: RenderedStep, record: StepRecord) -> Iterator[tuple[Ref, Ref]]:
    """Objects that are rendered under another name now, because a retry was requested: the new ref and the recorded
    one."""
    for template, now in refs_by_template(item).items():
        then = record.made_by(template)
        if len(now) == len(then):
            yield from ((new, old) for new, old in zip(now, then, strict=True) if new != old)


def gate_state(builder: DecisionBuilder, item: RenderedStep, index: int, gate: Gate, record: StepRecord) -> Verdict:
    """The verdict of a gate of a begun step, counting how often in a row it has passed, and its timeout."""
    observation, place = builder.observation, (item.id, index)
    scope = scope_of(builder, item, record.captured)
    seen = evaluate(gate.probe, observation.look, scope)
    counted = gate_verdict(gate, seen, observation.passes.get(place, 0))
    builder.passes[place] = counted.passes
    verdict = replace(counted.verdict, summary=summarize(gate, observation.look, scope))
    is_open = verdict.outcome in (ProbeResult.WAITING, ProbeResult.UNKNOWN)
    if is_open and gate.timeout is not None and builder.is_past(record.started, gate.timeout):
        return replace(verdict, outcome=ProbeResult.FAILED, reason=f"{verdict.reason} after {gate.timeout} s")
    return verdict


def job_group(item: RenderedStep) -> EveryTarget | None:
    """The Jobs from which this step takes node states."""
    jobs = item.step.job_states
    if jobs is None:
        return None
    return EveryTarget(api_version="batch/v1", kind="Job", namespace=jobs.namespace, labels=jobs.labels)


def note_jobs(builder: DecisionBuilder, item: RenderedStep) -> None:
    """Sets each node's state from its Job."""
    if (jobs := item.step.job_states) is None:
        return
    for job in _jobs_of(builder, item):
        node, ended = label(job, jobs.node_label), _true_condition(job, "Complete", "Failed")
        failed = _true_condition(job, "Failed")
        state = getattr(jobs.states, _WORDS[ended.type if ended else ""])
        if node and state:
            builder.move_node(node, state, *((failed.reason, failed.message) if failed else ()))


def last_moved(builder: DecisionBuilder, item: RenderedStep) -> datetime | None:
    """The time when one of the step's Jobs last started or ended: where nodes take turns, the step may take as long as
    there are nodes and stands still for none of it. None where there is no such Job."""
    names = ("startTime", "completionTime")
    times = (look_up(job, ("status", name)) for job in _jobs_of(builder, item) for name in names)
    return max((time_of(text) for text in times if isinstance(text, str)), default=None)


def jobs_are_done(builder: DecisionBuilder, item: RenderedStep) -> None:
    """Completes every node that the step's objects select, once these are complete: the Jobs' end may come later, or
    they may be gone without anybody having seen them."""
    if (jobs := item.step.job_states) is None or jobs.states.completed is None:
        return
    for node in _selected(builder, item):
        builder.move_node(node, jobs.states.completed)


def _selected(builder: DecisionBuilder, item: RenderedStep) -> Iterator[str]:
    """The plan's nodes that an object of the step selects by its `spec.nodeSelector`."""
    found = [look_up(manifest.body, ("spec", "nodeSelector")) for manifest in item.manifests]
    selectors = [each for each in found if each is not ABSENT]
    bodies = builder.observation.look.list(_NODES)
    for body in () if isinstance(bodies, ReadFailure) else bodies:
        labels, name = look_up(body, ("metadata", "labels")) or {}, ref_of(body).name
        if name in builder.nodes and any(selects(each, labels) for each in selectors):
            yield name


def _jobs_of(builder: DecisionBuilder, item: RenderedStep) -> Iterator[Body]:
    """The Jobs but those of earlier attempts, which are kept as evidence."""
    target, tried = job_group(item), builder.status.attempts_of(key_of(item))
    found = builder.observation.look.list(group_of(target)) if target else ()
    before = {made.ref.name for record in tried for made in record.objects}
    if not isinstance(found, ReadFailure):
        yield from (job for job in found if label(job, NODE_PLAN_LABEL) not in before)


_WORDS = {"": "active", "Complete": "completed", "Failed": "failed"}
"""The node state of a step that a Job gives, by the condition that ended it."""


def _true_condition(body: Body, *types: str) -> Condition | None:
    """The first condition of one of these types that is True."""
    return next((found for found in conditions(body) if found.status == "True" and found.type in types), None)


_MOST_NODES = 5


def explain_failure(builder: DecisionBuilder, verdict: Verdict) -> tuple[str, str]:
    """Reason and message of the condition by which an object says that it has failed; else the probe's words."""
    for ref in verdict.offenders:
        body = builder.observation.look.get(ref)
        if isinstance(body, Mapping) and (failed := _true_condition(body, "Failed")):
            return failed.reason, failed.message or verdict.reason
    return "", verdict.reason


def describe_failure(builder: DecisionBuilder, item: RenderedStep, message: str, why: str) -> str:
    """The phase's failure message, then the reason, then the nodes."""
    whole = message if not why or why in message else ": ".join(filter(None, (message, why)))
    return "; ".join([whole, *_failed_nodes(builder, item)])


def _failed_nodes(builder: DecisionBuilder, item: RenderedStep) -> list[str]:
    """The messages of failed Jobs by node; of many nodes the first ones."""
    failed = item.step.job_states.states.failed if item.step.job_states else None
    entries = {node: entry for node, entry in builder.status.node_states.items() if entry.get("state") == failed}
    said = [f"{node}: {entry['message']}" for node, entry in entries.items() if entry.get("message")]
    return said[:_MOST_NODES] + [f"and {len(said) - _MOST_NODES} more nodes"] * (len(said) > _MOST_NODES)
