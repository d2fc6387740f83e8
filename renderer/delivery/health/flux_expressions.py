"""Health rules in CEL, for `spec.healthCheckExprs` of a Flux Kustomization.

Flux asks `failed`, then `current`; what is neither is in progress, and so is an object of which a field is missing that
an expression reads. That the status is of an older generation Flux sees itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from renderer.catalog.kinds import Kinds
from renderer.delivery.health.health_rule import AllOf, AnyOf, Expression, HealthRule, health_rule
from renderer.describe import asks_presence
from renderer.model.path import Path
from renderer.model.probe import ConditionPredicate, FieldOf, FieldPredicate, Fixed, Test

_CONDITION_IS_BEHIND = (
    "has(c.observedGeneration) && has(metadata.generation) && c.observedGeneration < metadata.generation"
)
_REPORTED = (
    "(!has(metadata.generation) || has(status.observedGeneration) && status.observedGeneration >= metadata.generation)"
)


def flux_health(kinds: Kinds, used: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """`healthCheckExprs` for these kinds (API version and kind), each once; none for Kubernetes' own, which Flux judges
    by default: for a Job it would not evaluate them."""
    rows = (kinds.find(*kind) for kind in sorted(set(used)))
    rules = (health_rule(row) for row in rows if row is not None)
    return [cel(rule) for rule in rules if rule is not None and rule.is_custom]


def cel(rule: HealthRule) -> dict[str, str]:
    """One entry: `current`, and `failed` where the object itself can tell it."""
    reported = (_REPORTED,) if rule.reports_generation else ()
    failed = {"failed": _and((*reported, _inner(rule.failed)))} if rule.failed.parts else {}
    current = _and(("!has(metadata.deletionTimestamp)", *reported, *map(_inner, rule.current.parts)))
    return {"apiVersion": rule.api_version, "kind": rule.kind, **failed, "current": current}


def _cel(expression: Expression) -> str:
    match expression:
        case AllOf(parts=parts):
            return _and(map(_inner, parts))
        case AnyOf(parts=parts):
            return " || ".join(map(_inner, parts))
        case ConditionPredicate():
            return _condition(expression)
        case FieldPredicate():
            return _field(expression)


def _inner(expression: Expression) -> str:
    text = _cel(expression)
    return f"({text})" if " || " in text and not text.startswith("(") else text


def _and(parts: Iterable[str]) -> str:
    return " && ".join(parts)


def _condition(predicate: ConditionPredicate) -> str:
    asked = {"type": predicate.type, "status": predicate.status, "reason": predicate.reason}
    tests = [f"has(c.{key}) && c.{key} == {_literal(value)}" for key, value in asked.items() if value]
    return f"has(status.conditions) && status.conditions.exists(c, {_and([*tests, f'!({_CONDITION_IS_BEHIND})'])})"


def _field(predicate: FieldPredicate) -> str:
    found = _name(predicate.path)
    absent = " || ".join(f"!{part}" for part in _present(predicate.path))
    if predicate.test is Test.EXISTS:
        has_value = _and((*_present(predicate.path), f"!({found} in [null, '', [], {{}}])"))
        return has_value if asks_presence(predicate) else f"!({has_value})"
    if predicate.test is Test.IN:
        values = _values(predicate)
        named = f"{found} in [{', '.join(map(_literal, values))}]"
        return f"({absent} || {named})" if None in values else _and((*_present(predicate.path), named))
    return _and(dict.fromkeys((*_present(predicate.path), *_compared(predicate, found))))


def _compared(predicate: FieldPredicate, found: str) -> Iterator[str]:
    operand, sign = predicate.operand, _SIGNS[predicate.test]
    match operand:
        case FieldOf(path=path, default=None):
            yield from _present(path)
            yield f"{found} {sign} {_name(path)}"
        case FieldOf(path=path, default=other):
            yield f"{found} {sign} ({_and(_present(path))} ? {_name(path)} : {_literal(other)})"
        case Fixed(value=value):
            yield f"{found} {sign} {_literal(value)}"


_SIGNS: Mapping[Test, str] = {Test.EQUALS: "==", Test.AT_LEAST: ">=", Test.AT_MOST: "<=", Test.DIFFERS_FROM: "!="}


def _values(predicate: FieldPredicate) -> tuple[object, ...]:
    return tuple(predicate.operand.value) if isinstance(predicate.operand, Fixed) else ()


def _present(path: Path) -> tuple[str, ...]:
    """`has` for each field below the object's own; of those, as of variables, it cannot be asked."""
    return tuple(f"has({_name(path[:end])})" for end in range(2, len(path) + 1))


def _name(path: Path) -> str:
    return ".".join(map(str, path))


def _literal(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case _:
            return repr(value)
