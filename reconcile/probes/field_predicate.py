"""One field of one object against the expected value.

`atLeast` and `atMost` compare amounts: numbers, and texts that are a number or a Kubernetes quantity (`10Gi`, `500m`);
nothing else passes. All other tests are typed (text is never a number, and true is never 1), except for fields that the
API declares to be quantities: there `1Gi` is `1024Mi`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.probes.look import ProbeContext
from reconcile.probes.verdict import Verdict, passed, unknown, waiting
from reconcile.values import IsQuantity, same
from renderer import patterns
from renderer.describe import asks_presence, describe_pattern, describe_value
from renderer.errors import problem
from renderer.model.path import ABSENT, Path, look_up, path_name
from renderer.model.probe import Captured, FieldOf, FieldPredicate, Fixed, Operand, Test
from renderer.model.ref import Body
from renderer.quantity import quantity_of
from renderer.redaction import Redactor

_LONGEST = 120  # characters of a value that a reason shows


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    value: Any
    source: str = ""  # where the value comes from, in words


def check_field(predicate: FieldPredicate, body: Body, scope: ProbeContext) -> Verdict:
    """Never failed. An absent field is waiting, except where it is asked to be absent; a captured value that was never
    recorded is unknown. Raises `Problems` for a pattern that is none."""
    found = look_up(body, predicate.path)
    says = f"{path_name(predicate.path)} is {_shown(body, predicate.path, found, scope.redactor)}"
    if predicate.test is Test.EXISTS:
        return _presence(asks_presence(predicate), found, says)
    if isinstance(predicate.operand, Captured) and predicate.operand.name not in scope.captured:
        return unknown(f"{says}, and {predicate.operand.name} to compare it with was not recorded")
    expected = _expected(predicate.operand, body, scope.captured)
    if expected.value is None and not _may_be_null(predicate):
        return waiting(f"{says}, and {expected.source} to compare it with is absent")
    compare = _Comparison(is_quantity=scope.schemas.quantities_of(body), path=predicate.path)
    if _HOLDS[predicate.test](compare, None if found is ABSENT else found, expected.value):
        return passed(says)
    shown = _Expected(value=_hidden(body, predicate.path, expected.value, scope.redactor), source=expected.source)
    return waiting(f"{says}, expected {_describe(predicate.test, shown)}")


def is_empty(value: Any) -> bool:
    """Absent, null, and what Go's API types leave out when it is empty: text, lists, maps. Not 0, not false."""
    return value is ABSENT or value is None or (isinstance(value, (str, list, tuple, Mapping)) and not value)


def _presence(expected: bool, found: Any, says: str) -> Verdict:
    if is_empty(found) is not expected:
        return passed(says)
    return waiting(f"{says}, expected {'a value' if expected else 'none'}")


def _expected(operand: Operand, body: Body, captured: Mapping[str, Any]) -> _Expected:
    match operand:
        case Fixed(value=value):
            return _Expected(value=value)
        case Captured(name=name):
            return _Expected(value=captured[name], source=f"the captured {name}")
        case FieldOf(path=path, default=default):
            found = look_up(body, path)
            return _Expected(value=default if found is ABSENT else found, source=path_name(path))


def _may_be_null(predicate: FieldPredicate) -> bool:
    """A declared null means absent, and whatever is set differs from nothing; two absent fields are not equal."""
    return isinstance(predicate.operand, Fixed) or predicate.test is Test.DIFFERS_FROM


@dataclass(frozen=True, slots=True, kw_only=True)
class _Comparison:
    """Compares what stands at a path of an object."""

    is_quantity: IsQuantity
    path: Path

    def equals(self, found: Any, expected: Any) -> bool:
        return same(found, expected, self.is_quantity, self.path)

    def is_in(self, found: Any, expected: Any) -> bool:
        return any(self.equals(found, value) for value in expected)

    def differs_from(self, found: Any, other: Any) -> bool:
        return not is_empty(found) and not self.equals(found, other)

    def at_least(self, found: Any, least: Any) -> bool:
        have, need = quantity_of(found), quantity_of(least)
        return have is not None and need is not None and have >= need

    def at_most(self, found: Any, most: Any) -> bool:
        have, limit = quantity_of(found), quantity_of(most)
        return have is not None and limit is not None and have <= limit

    def matches(self, found: Any, pattern: Any) -> bool:
        return _matches(found, pattern)


def _matches(found: Any, pattern: Any) -> bool:
    if isinstance(found, bool) or not isinstance(found, (str, int, float)):
        return False
    try:
        return patterns.matches(str(pattern), str(found))
    except patterns.PatternError as error:
        raise problem("InvalidPattern", str(error), remedy="correct the probe's `matches`") from error


_HOLDS: Mapping[Test, Callable[[_Comparison, Any, Any], bool]] = {
    Test.EQUALS: _Comparison.equals,
    Test.IN: _Comparison.is_in,
    Test.AT_LEAST: _Comparison.at_least,
    Test.AT_MOST: _Comparison.at_most,
    Test.MATCHES: _Comparison.matches,
    Test.DIFFERS_FROM: _Comparison.differs_from,
}


def _describe(test: Test, expected: _Expected) -> str:
    source = f" ({expected.source})" if expected.source else ""
    match test:
        case Test.IN:
            return " or ".join(_short(value) for value in expected.value)
        case Test.AT_LEAST:
            return f"at least {_short(expected.value)}{source}"
        case Test.AT_MOST:
            return f"at most {_short(expected.value)}{source}"
        case Test.MATCHES:
            return f"a match of {describe_pattern(expected.value)}"
        case Test.DIFFERS_FROM:
            return f"a value other than {_short(expected.value)}{source}"
        case _:
            return f"{_short(expected.value)}{source}"


def shown_at(body: Body, path: Path, redactor: Redactor) -> str:
    """The value at a path as a message shows it."""
    return _shown(body, path, look_up(body, path), redactor)


def _shown(body: Body, path: Path, found: Any, redactor: Redactor) -> str:
    """A Secret's data is never shown."""
    if found is not ABSENT and body.get("kind") == "Secret" and path[0] in ("data", "stringData"):
        return "empty" if is_empty(found) else "set"
    return "absent" if found is ABSENT else _short(_hidden(body, path, found, redactor))


def _hidden(body: Body, path: Path, value: Any, redactor: Redactor) -> Any:
    """A value as it may be shown at that path of the object."""
    return redactor.field(str(body.get("apiVersion")), str(body.get("kind")), path, value)


def _short(value: Any) -> str:
    words = "absent" if value is None else describe_value(value)
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 1]}…"
