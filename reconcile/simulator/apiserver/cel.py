"""The part of CEL that CRD rules are written in here: fields, `has`, logic, comparison, `in`, `size`, text tests.

Pure and small on purpose: macros, arithmetic and Kubernetes' own libraries are not in it. `parse` raises
UnsupportedRuleError for what it does not know, so that a rule that was not run is not mistaken for one that passed.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

Scope = Mapping[str, Any]
Rule = Callable[[Scope], Any]

_TOKEN = re.compile(
    r"""\s*(?:([A-Za-z_]\w*)|(\d+\.\d+|\d+)|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|(&&|\|\||[=!<>]=|[-()\[\].,?:!<>]))"""
)


def _equal(left: Any, right: Any) -> bool:
    """A boolean is not a number."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


_HAS = re.compile(r"has\(self\.([A-Za-z_]\w*)\)")
_CONSTANTS = {"true": True, "false": False, "null": None}
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": _equal,
    "!=": lambda a, b: not _equal(a, b),
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "in": lambda a, b: a in b,
}
_METHODS: Mapping[str, Callable[..., Any]] = {
    "startsWith": str.startswith,
    "endsWith": str.endswith,
    "contains": lambda text, part: part in text,
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
    "size": len,
}


class UnsupportedRuleError(ValueError):
    """The rule uses what this part of CEL does not have."""


class EvaluationError(Exception):
    """The rule asked for something that is not there; the API server counts that as not satisfied."""


def parse(text: str) -> Rule:
    parser = _RuleParser(_tokens(text), text)
    rule = parser.ternary()
    parser.end()
    return rule


def is_transition(text: str) -> bool:
    """True if the rule compares with the value before, and so applies to updates only."""
    return re.search(r"\boldSelf\b", text) is not None


def alternatives(text: str) -> list[str] | None:
    """The fields of `has(self.a) || has(self.b)`, of which one is required; None for a rule of any other form."""
    found = [_HAS.fullmatch(part.strip()) for part in text.split("||")]
    return [match[1] for match in found if match] if all(found) else None


def holds(rule: Rule, scope: Scope) -> bool:
    try:
        return bool(rule(scope) is True)
    except (EvaluationError, TypeError):
        return False


def _tokens(text: str) -> list[str]:
    found, position = [], 0
    while text[position:].strip():
        match = _TOKEN.match(text, position)
        if match is None:
            raise UnsupportedRuleError(f"{text!r} from {text[position:]!r} on")
        found.append(next(part for part in match.groups() if part is not None))
        position = match.end()
    return found


class _RuleParser:
    """By descent, from the loosest binding operator to the tightest."""

    def __init__(self, tokens: list[str], text: str) -> None:
        self._tokens = tokens
        self._text = text
        self._at = 0

    def ternary(self) -> Rule:
        condition = self._either()
        if not self._take("?"):
            return condition
        yes = self._either()
        self._expect(":")
        no = self.ternary()
        return lambda scope: yes(scope) if condition(scope) else no(scope)

    def end(self) -> None:
        if self._at < len(self._tokens):
            raise UnsupportedRuleError(f"{self._text!r} at {self._tokens[self._at]!r}")

    def _either(self) -> Rule:
        rules = [self._both()]
        while self._take("||"):
            rules.append(self._both())
        return rules[0] if len(rules) == 1 else lambda scope: _settled(rules, scope, by=True)

    def _both(self) -> Rule:
        rules = [self._relation()]
        while self._take("&&"):
            rules.append(self._relation())
        return rules[0] if len(rules) == 1 else lambda scope: _settled(rules, scope, by=False)

    def _relation(self) -> Rule:
        left = self._unary()
        if self._peek() not in _COMPARE:
            return left
        compare, right = _COMPARE[self._next()], self._unary()
        return lambda scope: compare(left(scope), right(scope))

    def _unary(self) -> Rule:
        if self._take("!"):
            inner = self._unary()
            return lambda scope: not inner(scope)
        if self._take("-"):
            number = self._unary()
            return lambda scope: -number(scope)
        return self._selected(self._primary())

    def _selected(self, rule: Rule) -> Rule:
        while True:
            if self._take("."):
                rule = self._member(rule)
            elif self._take("["):
                rule = _indexed(rule, self.ternary())
                self._expect("]")
            else:
                return rule

    def _member(self, rule: Rule) -> Rule:
        name = self._next()
        if not self._take("("):
            return _indexed(rule, lambda scope: name)
        method, arguments = _METHODS.get(name), self._arguments(")")
        if method is None:
            raise UnsupportedRuleError(f"{self._text!r}: .{name}()")
        return lambda scope: method(rule(scope), *(argument(scope) for argument in arguments))

    def _primary(self) -> Rule:
        word = self._next()
        if word == "(":
            inner = self.ternary()
            self._expect(")")
            return inner
        if word == "[":
            items = self._arguments("]")
            return lambda scope: [item(scope) for item in items]
        if word in _CONSTANTS or word[0] in "\"'0123456789":
            value = _CONSTANTS[word] if word in _CONSTANTS else _literal(word)
            return lambda scope: value
        return self._call(word) if self._take("(") else self._name(word)

    def _name(self, token: str) -> Rule:
        if not token[0].isalpha():
            raise UnsupportedRuleError(f"{self._text!r} at {token!r}")
        return lambda scope: scope[token]

    def _call(self, name: str) -> Rule:
        (argument,) = self._arguments(")")
        if name == "has":
            return lambda scope: _is_there(argument, scope)
        if name == "size":
            return lambda scope: len(argument(scope))
        raise UnsupportedRuleError(f"{self._text!r}: {name}()")

    def _arguments(self, end: str) -> list[Rule]:
        found: list[Rule] = []
        while not self._take(end):
            found.append(self.ternary())
            if self._peek() != end:
                self._expect(",")
        return found

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        if not token:
            raise UnsupportedRuleError(f"{self._text!r} ends too early")
        self._at += 1
        return token

    def _take(self, token: str) -> bool:
        found = self._peek() == token
        self._at += found
        return found

    def _expect(self, token: str) -> None:
        if not self._take(token):
            raise UnsupportedRuleError(f"{self._text!r}: {token!r} expected before {self._peek()!r}")


def _settled(rules: list[Rule], scope: Scope, *, by: bool) -> bool:
    """`||` is settled by one true, `&&` by one false, even where another operand fails."""
    failed: EvaluationError | None = None
    for rule in rules:
        try:
            if bool(rule(scope)) is by:
                return by
        except EvaluationError as error:
            failed = error
    if failed:
        raise failed
    return not by


def _indexed(rule: Rule, index: Rule) -> Rule:
    def look(scope: Scope) -> Any:
        value, key = rule(scope), index(scope)
        try:
            return value[key]
        except (KeyError, IndexError, TypeError) as error:
            raise EvaluationError(f"no such key: {key}") from error

    return look


def _is_there(rule: Rule, scope: Scope) -> bool:
    try:
        rule(scope)
    except EvaluationError:
        return False
    return True


def _literal(token: str) -> Any:
    if token[0] in "\"'":
        inner = token[1:-1]
        return json.loads('"' + (inner.replace('"', '\\"') if token[0] == "'" else inner).replace("\\'", "'") + '"')
    return float(token) if "." in token else int(token)
