"""What a step looks at before it begins: whether it is asked for, and the values that it captures. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconcile.decide.builder import DecisionBuilder
from reconcile.probes.evaluate import evaluate
from reconcile.probes.look import ReadFailure, Scope
from reconcile.status.plan import key_of
from reconcile.status.record import StepRecord
from renderer.context.nodes import unknown_plan
from renderer.model.path import ABSENT, look_up
from renderer.model.phase import Capture
from renderer.model.probe import ObjectTarget
from renderer.model.ref import Ref
from renderer.model.rendered import RenderedStep

NO_MACHINE = "no Machine of fleet-local refers to node"
"""How a wait begins where Rancher cannot ask for a node."""


def read_captures(builder: DecisionBuilder, item: RenderedStep, *, done: bool = False) -> dict[str, Any] | str:
    """What the step captures as it begins, or why that cannot be read. Where another manager has begun it, and it is
    `done` or its work is, what is there now need not be what was there then."""
    found: dict[str, Any] = {}
    for capture in item.step.captures:
        if capture.inherits is not None and (done or _has_done_its_work(builder, item)):
            found[capture.name] = capture.inherits.value
            continue
        value = _captured(builder, item, capture)
        if isinstance(value, ReadFailure):
            return f"{capture.name} cannot be read: {value.why}"
        found[capture.name] = value
    return found


def missing_object(item: RenderedStep) -> str | None:
    """Why nobody can ask for the step: its node has no machine-plan Secret in which Rancher could. None where it is
    not so."""
    target, node = item.step.trigger.probe.target if item.step.trigger else None, item.step.node
    if node and isinstance(target, ObjectTarget) and target.ref.name == unknown_plan(node):
        return f"{NO_MACHINE} {node}, or it has no machine-plan Secret"
    return None


def is_asked_again(builder: DecisionBuilder, item: RenderedStep) -> bool:
    """Whether a step that repeats is asked for once more, with another value than it has answered."""
    step = item.step
    if not step.repeat or step.trigger is None or item.skipped is not None or item.pending:
        return False
    return evaluate(step.trigger.probe, builder.observation.look, scope_of(builder, item)).passed


def scope_of(builder: DecisionBuilder, item: RenderedStep, captured: Mapping[str, Any] | None = None) -> Scope:
    """Within what the step's probes are evaluated; `captured` goes before what the status knows."""
    known = builder.status.captured(item.phase, item.step.node)
    return Scope(
        kinds=builder.observation.kinds,
        schemas=builder.observation.schemas,
        now=builder.now,
        manifests=refs_by_template(item, builder.status.record(key_of(item))),
        captured={**known, **(captured or {})},
    )


def refs_by_template(item: RenderedStep, record: StepRecord | None = None) -> dict[str, tuple[Ref, ...]]:
    """What each template has made, as it was recorded; before that, and for what is borrowed, what it renders now."""
    refs: dict[str, tuple[Ref, ...]] = {}
    for manifest in item.manifests:
        refs[manifest.spec.file] = (*refs.get(manifest.spec.file, ()), manifest.ref)
    made = record.objects if record else ()
    return {**refs, **{found.template: record.made_by(found.template) for found in made if record and found.template}}


def renamed(item: RenderedStep, record: StepRecord) -> Iterator[tuple[Ref, Ref]]:
    """The objects of a step that are called otherwise by now, since the plan asks for another attempt: how, and how
    they were made."""
    for template, now in refs_by_template(item).items():
        then = record.made_by(template)
        if len(now) == len(then):
            yield from ((new, old) for new, old in zip(now, then, strict=True) if new != old)


def _has_done_its_work(builder: DecisionBuilder, item: RenderedStep) -> bool:
    scope, look = scope_of(builder, item), builder.observation.look
    return bool(item.step.gates) and all(evaluate(gate.probe, look, scope).passed for gate in item.step.gates)


def _captured(builder: DecisionBuilder, item: RenderedStep, capture: Capture) -> Any:
    ref = _ref_of(item, capture)
    body = builder.observation.look.get(ref)
    if isinstance(body, ReadFailure):
        return body
    value = ABSENT if body is None else look_up(body, capture.path)
    if value is ABSENT or value is None:
        value = capture.default
    if value is None:
        return ReadFailure(why=f"{ref} does not have it")
    return value + capture.add if isinstance(value, int) and not isinstance(value, bool) else value


def _ref_of(item: RenderedStep, capture: Capture) -> Ref:
    if isinstance(capture.target, ObjectTarget):
        return capture.target.ref
    return next(iter(refs_by_template(item).get(getattr(capture.target, "file", ""), ())))
