"""One predicate, or a kind's own rule, on one object that is there.

Reasons do not name the object; who asks about it does. A status of an older generation than the object's proves
nothing, neither that it is ready nor that it has failed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from reconcile import objects
from reconcile.probes.field_predicate import check_field
from reconcile.probes.look import Look, ProbeContext
from reconcile.probes.rules.call import RuleCall
from reconcile.probes.rules.table import rule_named
from reconcile.probes.verdict import ProbeResult, Verdict, passed, together, waiting
from renderer.catalog.kinds import Kinds, Ready
from renderer.errors import problem
from renderer.model.probe import (
    AbsentPredicate,
    BuiltinPredicate,
    ConditionPredicate,
    FieldPredicate,
    Predicate,
    RulePredicate,
)
from renderer.model.ref import Body, Ref
from renderer.redaction import Redactor

_MESSAGE = ("status", "conditions", 0, "message")
_LONGEST = 240  # characters of a condition's message that a reason shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """An object as it was read; `body` and `ref` are None for the cluster as a whole."""

    look: Look
    scope: ProbeContext
    ref: Ref | None = None
    body: Body | None = None


def check_all(expected: Iterable[Predicate], fatal: Iterable[Predicate], subject: Subject) -> Verdict:
    """Failed when one of `fatal` holds; else all of `expected` together. What does not pass is unknown if it was not
    looked at whether it has failed."""
    grave = [check(item, subject) for item in fatal]
    proven = [verdict for verdict in grave if verdict.passed]
    if proven:
        return replace(together(proven), outcome=ProbeResult.FAILED)
    found = together([check(item, subject) for item in expected])
    unread = [verdict for verdict in grave if verdict.outcome is ProbeResult.UNKNOWN]
    return found if found.passed or not unread else together([found, *unread])


def check(predicate: Predicate, subject: Subject) -> Verdict:
    """Raises `Problems` for what a catalogue that was verified cannot contain."""
    if isinstance(predicate, RulePredicate):
        return _rule(predicate, subject)
    if subject.body is None or subject.ref is None:
        raise problem(
            "InvalidProbe",
            f"{type(predicate).__name__.lower()} asks about an object, and the probe is about the cluster as a whole",
            remedy="name an object, every object of a kind or a manifest; or use a rule",
        )
    match predicate:
        case ConditionPredicate():
            return _condition(predicate, subject.body, _behind(subject), subject.scope.redactor)
        case FieldPredicate():
            behind = _behind(subject) if predicate.path[0] == "status" else None
            return waiting(behind) if behind else check_field(predicate, subject.body, subject.scope)
        case AbsentPredicate():
            return waiting("still exists")
        case BuiltinPredicate():
            ready = own_rule(subject.scope.kinds, subject.ref.api_version, subject.ref.kind)
            return check_all(ready.all, ready.fails, subject)


def own_rule(kinds: Kinds, api_version: str, kind: str) -> Ready:
    """Raises `Problems` for a kind that has no row, or a row that does not say when an object is ready."""
    ready = kinds.row(api_version, kind).ready
    if ready is None:
        raise problem(
            "NoRule",
            f"{api_version} {kind} has no readiness rule",
            remedy="add `ready` to its row in _kinds/ of the template tree, or state in the probe what it waits for",
        )
    return ready


def _condition(predicate: ConditionPredicate, body: Body, behind: str | None, redactor: Redactor) -> Verdict:
    found = objects.condition(body, predicate.type)
    expected = predicate.status + (f" with reason {predicate.reason}" if predicate.reason else "")
    if found is None:
        return waiting(f"condition {predicate.type} is absent, expected {expected}")
    behind = behind or _condition_behind(found, body)
    if behind:
        return waiting(behind)
    says = f"condition {found.type} is {found.status}{_because(found, body, redactor)}"
    if found.status == predicate.status and predicate.reason in (None, found.reason):
        return passed(says)
    return waiting(f"{says}, expected {expected}")


def _because(found: objects.Condition, body: Body, redactor: Redactor) -> str:
    message = redactor.field(str(body.get("apiVersion")), str(body.get("kind")), _MESSAGE, found.message)
    parts = (found.reason, redactor.text(" ".join(message.split())))
    words = ": ".join(part for part in parts if part)
    words = words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
    return f" ({words})" if words else ""


def _behind(subject: Subject) -> str | None:
    """Explains why the status proves nothing; None where it is about the present generation, or the kind never says."""
    if subject.body is None or subject.ref is None:
        return None
    expected, observed = objects.generation(subject.body), objects.observed_generation(subject.body)
    row = subject.scope.kinds.find(subject.ref.api_version, subject.ref.kind)
    if observed is None and expected is not None and row is not None and row.reports_generation:
        return f"generation {expected} is not observed yet, the status does not say which generation it is about"
    if not objects.is_behind(subject.body, observed):
        return None
    return f"generation {expected} is not observed yet, the status is about generation {observed}"


def _condition_behind(found: objects.Condition, body: Body) -> str | None:
    if not objects.is_behind(body, found.observed_generation):
        return None
    return (
        f"generation {objects.generation(body)} is not observed yet, "
        f"condition {found.type} is about generation {found.observed_generation}"
    )


def _rule(predicate: RulePredicate, subject: Subject) -> Verdict:
    if behind := _behind(subject):
        return waiting(behind)
    call = RuleCall(
        arguments=dict(predicate.arguments),
        look=subject.look,
        scope=subject.scope,
        ref=subject.ref,
        body=subject.body or {},
    )
    return rule_named(predicate.name)(call)
