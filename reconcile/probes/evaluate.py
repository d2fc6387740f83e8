"""Answers a probe from what was read: each object alone, then all of them together.

What holds for each object, in this order: it could not be looked at (unknown); it does not exist (waiting, unless that
is what is asked); something fatal holds (failed); it is being deleted (waiting); the predicates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from reconcile import objects
from reconcile.probes.look import Group, Look, ProbeContext, ReadFailure
from reconcile.probes.predicates import Subject, check, check_all
from reconcile.probes.verdict import ProbeResult, Verdict, failed, passed, together, unread, waiting, worst
from renderer.describe import describe_group
from renderer.model.path import ABSENT, look_up
from renderer.model.probe import (
    AbsentPredicate,
    ClusterTarget,
    EveryTarget,
    FieldPredicate,
    Gate,
    ManifestTarget,
    ObjectTarget,
    Predicate,
    Probe,
    is_about_fields,
)
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.sharing import SameObject

_NAMED = 3  # offenders whose reasons are given; the others are counted


def evaluate(probe: Probe, look: Look, scope: ProbeContext) -> Verdict:
    """The reason is one line, whatever the objects say. Raises `Problems` for a kind without a rule, and for what a
    verified catalogue cannot contain."""
    verdict = _verdict(probe, look, scope)
    reason = " ".join(verdict.reason.split())
    return verdict if reason == verdict.reason else replace(verdict, reason=reason)


def _verdict(probe: Probe, look: Look, scope: ProbeContext) -> Verdict:
    match probe.target:
        case ClusterTarget():
            return check_all(probe.all, probe.fails, Subject(look=look, scope=scope))
        case ObjectTarget():
            return _one(probe, present_ref(probe.target, look), look, scope)
        case ManifestTarget(file=file):
            return _manifests(probe, file, look, scope)
        case EveryTarget():
            return _every(probe, probe.target, look, scope)


def present_ref(target: ObjectTarget, look: Look) -> Ref:
    """The first of the target's names under which there is an object, or which cannot be read; else its own name."""
    return next((ref for ref in (target.ref, *target.others) if look.get(ref) is not None), target.ref)


def _one(probe: Probe, ref: Ref, look: Look, scope: ProbeContext) -> Verdict:
    body = look.get(ref)
    verdict = _judge(probe, ref, body, look, scope)
    return verdict if body is None or isinstance(body, ReadFailure) else replace(verdict, seen=_seen(probe.all, body))


def summarize(gate: Gate, look: Look, scope: ProbeContext) -> str:
    """Describes what the gate still waits for, in its own words; empty if it has none, or if its object cannot be
    read."""
    target, summary = gate.probe.target, gate.summary
    if summary is None or not isinstance(target, ObjectTarget):
        return ""
    ref = present_ref(target, look)
    body = look.get(ref)
    if body is None or isinstance(body, ReadFailure):
        return ""
    subject = Subject(look=look, scope=scope, ref=ref, body=body)
    open_tests = [
        text.replace("<found>", _found(predicate, body, scope))
        for predicate, text in zip(gate.probe.all, summary.unmet, strict=True)
        if not check(predicate, subject).passed
    ]
    return f"{summary.waits_for}: {', '.join(open_tests)}" if open_tests else summary.waits_for


def _found(predicate: Predicate, body: Body, scope: ProbeContext) -> str:
    """The value that a predicate looks at, as a summary shows it."""
    if not isinstance(predicate, FieldPredicate):
        return str(ABSENT)
    found = look_up(body, predicate.path)
    return str(scope.redactor.field(str(body.get("apiVersion")), str(body.get("kind")), predicate.path, found))


def _manifests(probe: Probe, file: str, look: Look, scope: ProbeContext) -> Verdict:
    refs = scope.manifests.get(file, ())
    if not refs:
        return waiting(f"{file} renders no object, and there is nothing to look at")
    if len(refs) == 1:
        return _one(probe, refs[0], look, scope)
    return _together([_judge(probe, ref, look.get(ref), look, scope) for ref in refs], f"objects of {file}")


def _every(probe: Probe, target: EveryTarget, look: Look, scope: ProbeContext) -> Verdict:
    bodies = look.list(group_of(target))
    if isinstance(bodies, ReadFailure):
        return unread(describe_group(target), bodies)
    verdicts = [verdict for body in bodies if (verdict := _known_member(probe, target, body, look, scope)) is not None]
    if len(verdicts) < target.at_least and worst(verdicts) not in (ProbeResult.FAILED, ProbeResult.UNKNOWN):
        found = f"only {len(verdicts)}" if verdicts else "no"
        return waiting(f"{found} {describe_group(target)} was found, expected at least {target.at_least}")
    if not verdicts:
        return passed(f"no {describe_group(target)} was found, and none is needed")
    return _together(verdicts, scope.kinds.row(target.api_version, target.kind).kind.plural)


def group_of(target: EveryTarget) -> Group:
    """The group that is read for a target; its `where` is applied to what was read."""
    return Group(api_version=target.api_version, kind=target.kind, namespace=target.namespace, labels=target.labels)


def matching(target: EveryTarget, look: Look, scope: ProbeContext) -> tuple[Body, ...] | ReadFailure:
    """The objects that a target is about, by namespace and name, each with its kind. Raises as `evaluate`."""
    found = look.list(group_of(target))
    if isinstance(found, ReadFailure):
        return found
    typed = ({"apiVersion": target.api_version, "kind": target.kind, **body} for body in found)
    return tuple(body for body in typed if holds(target.where, body, look, scope))


def holds(predicates: Iterable[Predicate], body: Body, look: Look, scope: ProbeContext) -> bool:
    """True if all of them hold for the object."""
    subject = Subject(look=look, scope=scope, ref=ref_of(body), body=body)
    return all(check(predicate, subject).passed for predicate in predicates)


def _known_member(probe: Probe, target: EveryTarget, body: Body, look: Look, scope: ProbeContext) -> Verdict | None:
    """As `_member`; known of an object that passes and has not changed, where nothing else is looked at."""
    if scope.passing is None or not is_about_fields(probe):
        return _member(probe, target, body, look, scope)
    purpose = SameObject(probe)
    known = scope.passing.get(body, purpose)
    if known is None and (known := _member(probe, target, body, look, scope)) is not None and known.passed:
        scope.passing.put(body, known, purpose)
    return known


def _member(probe: Probe, target: EveryTarget, body: Body, look: Look, scope: ProbeContext) -> Verdict | None:
    """None for an object that `where` leaves out."""
    ref = ref_of(body)
    if not target.where:
        return _judge(probe, ref, body, look, scope)
    subject = Subject(look=look, scope=scope, ref=ref, body=body)
    taken = together([check(item, subject) for item in target.where])
    if taken.outcome is ProbeResult.WAITING:
        return None
    return _judge(probe, ref, body, look, scope) if taken.passed else _about(ref, taken)


def _judge(probe: Probe, ref: Ref, body: Body | ReadFailure | None, look: Look, scope: ProbeContext) -> Verdict:
    if isinstance(body, ReadFailure):
        return unread(ref, body, ref)
    if body is None:
        return _missing(probe, ref)
    verdict = check_all(probe.all, probe.fails, Subject(look=look, scope=scope, ref=ref, body=body))
    since = objects.deletion_timestamp(body)
    if since and verdict.outcome is not ProbeResult.FAILED:
        verdict = waiting(f"is being deleted (since {since})")
        return replace(verdict, reason=f"{ref} {verdict.reason}", offenders=(ref,))
    return _about(ref, verdict)


def _missing(probe: Probe, ref: Ref) -> Verdict:
    says = f"{ref} does not exist"
    if any(isinstance(predicate, AbsentPredicate) for predicate in probe.fails):
        return failed(says, ref)
    return (
        passed(says) if all(isinstance(predicate, AbsentPredicate) for predicate in probe.all) else waiting(says, ref)
    )


def _about(ref: Ref, verdict: Verdict) -> Verdict:
    """Several predicates about one object are one verdict; a rule's verdicts about others stay several."""
    offenders = () if verdict.passed else (ref, *(other for other in verdict.offenders if other != ref))
    each = tuple(single for single in verdict.each if any(other != ref for other in single.offenders))
    return replace(verdict, reason=f"{ref}: {verdict.reason}", offenders=offenders, each=each)


def _seen(predicates: Iterable[Predicate], body: Body) -> Any:
    field = next((predicate for predicate in predicates if isinstance(predicate, FieldPredicate)), None)
    return look_up(body, field.path) if field else ABSENT


def _together(verdicts: Sequence[Verdict], noun: str) -> Verdict:
    """`2 of 3 nodes pass; Node b: condition Ready is False, expected True`. Only the worst
    are named, and all of these are offenders."""
    outcome = worst(verdicts)
    good = sum(verdict.passed for verdict in verdicts)
    reported = [verdict.reason for verdict in verdicts if verdict.outcome is outcome and not verdict.passed]
    more = [f"and {len(reported) - _NAMED} more"] if len(reported) > _NAMED else []
    return Verdict(
        outcome=outcome,
        reason="; ".join([f"{good} of {len(verdicts)} {noun} pass", *reported[:_NAMED], *more]),
        offenders=tuple(ref for verdict in verdicts if verdict.outcome is outcome for ref in verdict.offenders),
        each=tuple(single for verdict in verdicts for single in verdict.singles),
    )
