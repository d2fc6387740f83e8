"""Reads what a step captures: when it starts, while it is under way, and until a later step begins. Writes nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.probing import refs_by_template, scope_of
from reconcile.preflight.running_plan import SeldomLook
from reconcile.probes.evaluate import evaluate, matching, present_ref
from reconcile.probes.look import ReadFailure
from reconcile.probes.rules.call import RuleCall
from reconcile.probes.rules.table import rule_named
from reconcile.probes.verdict import ProbeResult
from reconcile.status.record import StepRecord
from renderer.model.path import ABSENT, look_up
from renderer.model.phase import Capture
from renderer.model.probe import EveryTarget, ObjectTarget, RulePredicate
from renderer.model.ref import Ref, ref_of
from renderer.model.rendered import RenderedStep


def read_captures(builder: DecisionBuilder, item: RenderedStep, *, done: bool = False) -> dict[str, Any] | str:
    """Reads what the step captures when it starts; a text says why that is not possible. If another manager started
    the step, and it is `done` or its gates pass, the present values need not be those of its start."""
    found: dict[str, Any] = {}
    for capture in item.step.captures:
        if capture.value_on_take_over is not None and (done or _has_done_its_work(builder, item)):
            found[capture.name] = capture.value_on_take_over.value
            continue
        if (instead := capture.value_if) is not None:
            verdict = evaluate(instead.probe, builder.observation.look, scope_of(builder, item))
            if verdict.outcome is ProbeResult.UNKNOWN:
                return f"{capture.name} cannot be read: {verdict.reason}"
            if verdict.passed:
                found[capture.name] = instead.value
                continue
        value = _value_of(builder, item, capture, done)
        if isinstance(value, ReadFailure):
            return f"{capture.name} cannot be read: {value.why}"
        found[capture.name] = value
    return found


def _has_done_its_work(builder: DecisionBuilder, item: RenderedStep) -> bool:
    scope, look = scope_of(builder, item), builder.observation.look
    return bool(item.step.gates) and all(evaluate(gate.probe, look, scope).passed for gate in item.step.gates)


def _value_of(builder: DecisionBuilder, item: RenderedStep, capture: Capture, done: bool) -> Any:
    if isinstance(capture.target, EveryTarget):
        return _names(builder, item, capture.target)
    return _united(builder, item, capture, done) if capture.unite else _captured(builder, item, capture)


def _names(builder: DecisionBuilder, item: RenderedStep, target: EveryTarget) -> str | ReadFailure:
    """The names of all objects that match, as a list with commas."""
    found = matching(target, builder.observation.look, scope_of(builder, item))
    if isinstance(found, ReadFailure):
        return found
    refs = map(ref_of, found)
    return ",".join(f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name for ref in refs)


def _captured(builder: DecisionBuilder, item: RenderedStep, capture: Capture) -> Any:
    ref = _ref_of(builder, item, capture)
    body = builder.observation.look.get(ref)
    if isinstance(body, ReadFailure):
        return body
    value = ABSENT if body is None else look_up(body, capture.path)
    if value is ABSENT or value is None:
        value = capture.default
    if value is None:
        return ReadFailure(why=f"{ref} does not have it")
    return value + capture.add if isinstance(value, int) and not isinstance(value, bool) else value


def _united(builder: DecisionBuilder, item: RenderedStep, capture: Capture, done: bool) -> str | ReadFailure:
    """All names that are known: those captured before, those that the field has now, and those that the rule finds."""
    live = _captured(builder, item, replace(capture, default=""))
    if isinstance(live, ReadFailure):
        return live
    rule = capture.unite.rule if capture.unite and not done else None
    found = _found_by(builder, item, rule) if rule else ""
    if isinstance(found, ReadFailure):
        return found
    before = builder.status.captured(item.phase, item.step.node).get(capture.name, "")
    return joined_names(before, live, found)


def _found_by(builder: DecisionBuilder, item: RenderedStep, rule: RulePredicate) -> str | ReadFailure:
    """The names that the rule finds; none where nobody can ever look, as in files that hold no such objects."""
    look = SeldomLook(look=builder.observation.look)  # virtual machines are not watched
    scope = scope_of(builder, item)
    verdict = rule_named(rule.name)(RuleCall(arguments=dict(rule.arguments), look=look, scope=scope, body={}))
    if verdict.outcome is not ProbeResult.UNKNOWN:
        return str(verdict.seen)
    failures = [answer for answer in look.seen.values() if isinstance(answer, ReadFailure)]
    return "" if all(failure.out_of_reach for failure in failures) else ReadFailure(why=verdict.reason)


def joined_names(*lists: Any) -> str:
    """One list with commas, each name once."""
    names = (name.strip() for text in lists for name in str(text or "").split(","))
    return ",".join(dict.fromkeys(filter(None, names)))


def united_since(builder: DecisionBuilder, item: RenderedStep, record: StepRecord) -> dict[str, Any]:
    """The captured values of a step under way, with the names that their fields have got since."""
    grown = dict(record.captured)
    for capture in (each for each in item.step.captures if each.unite):
        live = _captured(builder, item, replace(capture, default=""))
        if not isinstance(live, ReadFailure):
            grown[capture.name] = joined_names(record.captured.get(capture.name), live)
    return grown


def given_up(builder: DecisionBuilder, item: RenderedStep, record: StepRecord) -> dict[str, Any]:
    """The captured values of a step that is over, with those that fields have got before a later step has begun."""
    found = dict(record.captured)
    for capture in item.step.captures:
        before = capture.value_before
        if before is None or found.get(capture.name) == before.value or _has_begun(builder, item, before.step):
            continue
        if _captured(builder, item, capture) == before.value:
            found[capture.name] = before.value
    return found


def _has_begun(builder: DecisionBuilder, item: RenderedStep, step: str) -> bool:
    """True if another step of the same phase and node has."""
    return builder.status.has_begun((item.phase, step, item.step.node))


def _ref_of(builder: DecisionBuilder, item: RenderedStep, capture: Capture) -> Ref:
    if isinstance(capture.target, ObjectTarget):
        return present_ref(capture.target, builder.observation.look)
    return next(iter(refs_by_template(item).get(getattr(capture.target, "file", ""), ())))
