"""Reads probes, triggers and gates of `phase.yaml` and of the kinds table into the model.

The declarations have passed their schemas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from renderer.model.path import parse_path
from renderer.model.probe import (
    AbsentPredicate,
    BuiltinPredicate,
    Captured,
    ClusterTarget,
    ConditionPredicate,
    Event,
    EveryTarget,
    Failure,
    FieldOf,
    FieldPredicate,
    Fixed,
    Gate,
    ManifestTarget,
    ObjectTarget,
    Operand,
    Predicate,
    Probe,
    RulePredicate,
    Severity,
    Target,
    Test,
    Trigger,
    WaitSummary,
)
from renderer.model.ref import Ref, one_ref
from renderer.patterns import compiled
from renderer.quantity import quantity_of

Raw = Mapping[str, Any]


class AmountError(ValueError):
    """`text` is what was written for it."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def probe_from(raw: Raw) -> Probe:
    return Probe(
        target=target_from(raw),
        all=tuple(predicate_from(item) for item in raw["all"]),
        fails=tuple(predicate_from(item) for item in raw.get("fails", ())),
    )


def predicate_from(raw: Raw) -> Predicate:
    (word, body), *_ = raw.items()
    return _PREDICATES[word](body)


def ref_from(raw: Raw) -> Ref:
    return one_ref(raw["apiVersion"], raw["kind"], raw.get("namespace", ""), raw["name"])


def target_from(raw: Raw) -> Target:
    if "manifest" in raw:
        return ManifestTarget(file=raw["manifest"])
    if "object" in raw:
        return _object(raw["object"])
    if "every" in raw:
        return every_from(raw["every"])
    return ClusterTarget()


def _object(raw: Raw) -> ObjectTarget:
    ref = ref_from(raw)
    others = (ref_from({**raw, "name": name}) for name in raw.get("otherNames", ()))
    return ObjectTarget(ref=ref, others=tuple(other for other in others if other != ref))


def every_from(raw: Raw) -> EveryTarget:
    return EveryTarget(
        api_version=raw["apiVersion"],
        kind=raw["kind"],
        namespace=raw.get("namespace", ""),
        labels=tuple(sorted(raw.get("labels", {}).items())),
        where=tuple(predicate_from(item) for item in raw.get("where", ())),
        at_least=raw.get("atLeast", 1),
    )


def _condition_predicate(raw: Raw) -> ConditionPredicate:
    return ConditionPredicate(type=raw["type"], status=raw["status"], reason=raw.get("reason"))


def field_from(raw: Raw) -> FieldPredicate:
    test = Test(next(key for key in raw if key != "path"))
    operand = _operand(raw[test])
    if test in (Test.AT_LEAST, Test.AT_MOST):
        _must_be_amount(test, operand)
    if test is Test.MATCHES and isinstance(operand, Fixed) and "{{" not in str(operand.value):
        compiled(str(operand.value))
    return FieldPredicate(path=parse_path(raw["path"]), test=test, operand=operand)


def _must_be_amount(test: Test, operand: Operand) -> None:
    """A text with a brace has yet to be filled in, and is read again then."""
    limit = operand.value if isinstance(operand, Fixed) else getattr(operand, "default", None)
    is_known = isinstance(operand, Fixed) or limit is not None
    if is_known and quantity_of(limit) is None and "{" not in str(limit):
        raise AmountError(f"{test} {limit!r} is not a number or a quantity such as 10Gi or 500m", str(limit))


def _operand(raw: Any) -> Operand:
    if isinstance(raw, Mapping):
        if "captured" in raw:
            return Captured(name=raw["captured"])
        return FieldOf(path=parse_path(raw["path"]), default=raw.get("default"))
    return Fixed(value=tuple(raw) if isinstance(raw, list) else raw)


def _rule(raw: Raw) -> RulePredicate:
    return RulePredicate(name=raw["name"], arguments=tuple((key, value) for key, value in raw.items() if key != "name"))


_PREDICATES: Mapping[str, Callable[[Any], Predicate]] = {
    "condition": _condition_predicate,
    "field": field_from,
    "rule": _rule,
    "absent": lambda _: AbsentPredicate(),
    "builtin": lambda _: BuiltinPredicate(),
}


def trigger_from(raw: Raw | None) -> Trigger | None:
    if raw is None:
        return None
    return Trigger(probe=probe_from(raw["probe"]), capture=raw.get("capture"), waiting=raw.get("waiting"))


def gate_from(raw: Raw) -> Gate:
    return Gate(
        probe=probe_from(raw["probe"]),
        waiting=raw.get("waiting"),
        summary=_summary(raw.get("summary"), len(raw["probe"]["all"])),
        failure=_failure(raw.get("failure", {})),
        slow_after=seconds(raw.get("slowAfter")),
        timeout=seconds(raw.get("timeout")),
        consecutive=raw.get("consecutive", 1),
    )


def _summary(raw: Raw | None, tests: int) -> WaitSummary | None:
    if raw is None:
        return None
    if len(raw["unmet"]) != tests:
        raise ValueError(
            f"summary.unmet has {len(raw['unmet'])} texts, expected one for each of the {tests} tests in all"
        )
    return WaitSummary(waits_for=raw["waitsFor"], unmet=tuple(raw["unmet"]))


def _failure(raw: Raw) -> Failure:
    return Failure(
        message=raw.get("message"),
        severity=Severity(raw.get("severity", Severity.TERMINAL)),
        event=event_from(raw.get("event")),
    )


def event_from(raw: Raw | None) -> Event | None:
    return Event(type=raw["type"], reason=raw["reason"], message=raw["message"]) if raw else None


def seconds(text: str | None) -> int | None:
    """The seconds of `30m`."""
    return None if text is None else int(text[:-1]) * _SECONDS[text[-1]]
