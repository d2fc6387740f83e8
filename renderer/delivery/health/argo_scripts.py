"""Health rules in Lua, for `resource.customizations.health.<group>_<kind>` of argocd-cm.

Argo CD runs them with the object in `obj` and the libraries base, table and string. Its settings hold for every
Application, so kinds that Argo CD judges itself, Kubernetes' own, get none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from renderer.catalog.kinds import Kinds
from renderer.delivery.health.health_rule import AllOf, AnyOf, Expression, HealthRule, conditions_of, health_rules
from renderer.describe import asks_presence
from renderer.model.path import Path
from renderer.model.probe import ConditionPredicate, FieldOf, FieldPredicate, Fixed, Operand, Test

_SETTING = "resource.customizations.health."

APPLICATION = """local hs = {status = "Progressing", message = ""}
if obj.status ~= nil and obj.status.health ~= nil then
  hs.status = obj.status.health.status or hs.status
  hs.message = obj.status.health.message or hs.message
end
return hs
"""
"""An Application's own health, which Argo CD takes into account in an app of apps only where its settings say so."""

_HELPERS: Mapping[str, str] = {
    "at": """local function at(...)
  local value = obj
  for _, key in ipairs({...}) do
    if type(value) ~= "table" then return nil end
    value = value[key]
  end
  return value
end
""",
    "number": """local function number(value)
  return type(value) == "number" and value % 1 == 0 and value or nil
end
""",
    "behind": """local generation = number(at("metadata", "generation"))
local function behind(observed)
  return generation ~= nil and number(observed) ~= nil and observed < generation
end
""",
    "condition": """local function condition(name)
  local list = at("status", "conditions")
  for _, entry in ipairs(type(list) == "table" and list or {}) do
    if type(entry) == "table" and entry.type == name then return entry end
  end
  return {}
end
""",
    "is": """local function is(name, status, reason)
  local found = condition(name)
  return found.status == status and (reason == nil or found.reason == reason) and not behind(found.observedGeneration)
end
""",
    "set": """local function set(value)
  return value ~= nil and value ~= "" and not (type(value) == "table" and next(value) == nil)
end
""",
    "default": """local function default(value, other)
  if value == nil then return other end
  return value
end
""",
    "at_least": """local function at_least(value, least)
  return type(value) == "number" and type(least) == "number" and value >= least
end
""",
}
"""Functions by name, each after those that it calls."""


def argo_health(kinds: Kinds) -> Mapping[str, str]:
    """The settings for argocd-cm: a rule for each kind that is not Kubernetes' own, and one for Applications."""
    settings = {f"{_SETTING}{rule.group}_{rule.kind}": lua(rule) for rule in health_rules(kinds) if rule.is_custom}
    return settings | {f"{_SETTING}argoproj.io_Application": APPLICATION}


def lua(rule: HealthRule) -> str:
    """The script for one kind; it returns `status` and `message`."""
    ready = f'not set(at("metadata", "deletionTimestamp")) and {_lua(rule.current)}'
    branches = [("Degraded", _lua(rule.failed))] if rule.failed.parts else []
    lines = [
        f"local stale = {_stale(rule)}",
        f'local hs = {{status = "Progressing", message = {_message(rule)}}}',
    ]
    for word, (status, holds) in zip(("if", "elseif"), (*branches, ("Healthy", ready)), strict=False):
        lines += [f"{word} {holds} then", f'  hs.status = "{status}"']
    text = "\n".join([*lines, "end", "return hs", ""])
    for name, helper in reversed(tuple(_HELPERS.items())):
        if re.search(rf"\b{name}\(", text):
            text = helper + text
    return text


def _stale(rule: HealthRule) -> str:
    observed = 'at("status", "observedGeneration")'
    if not rule.tells_generation:
        return "false"
    if rule.reports_generation:
        return f"generation ~= nil and number({observed}) == nil or behind({observed})"
    return f"behind({observed})"


def _message(rule: HealthRule) -> str:
    expected = _literal(f"expected that {rule.expected}")
    types = conditions_of((*rule.failed.parts, *rule.current.parts))
    return f"condition({_literal(types[0])}).message or {expected}" if types else expected


def _lua(expression: Expression) -> str:
    match expression:
        case AllOf(parts=parts):
            return " and ".join(map(_inner, parts))
        case AnyOf(parts=parts):
            return " or ".join(map(_inner, parts))
        case ConditionPredicate(type=type_, status=status, reason=reason):
            return f"not stale and is({', '.join(_literal(item) for item in (type_, status, reason) if item)})"
        case FieldPredicate(path=path):
            return f"not stale and {_field(expression)}" if path[0] == "status" else _field(expression)


def _inner(expression: Expression) -> str:
    text = _lua(expression)
    return f"({text})" if isinstance(expression, AllOf | AnyOf) and len(expression.parts) > 1 else text


def _field(predicate: FieldPredicate) -> str:
    found, expected = _at(predicate.path), _operand(predicate.operand)
    match predicate.test:
        case Test.EXISTS:
            return f"set({found})" if asks_presence(predicate) else f"not set({found})"
        case Test.EQUALS:
            return f"{found} == {expected}" + ("" if _is_fixed(predicate) else f" and {expected} ~= nil")
        case Test.IN:
            return f"({' or '.join(f'{found} == {_literal(value)}' for value in _values(predicate))})"
        case Test.AT_LEAST:
            return f"at_least({found}, {expected})"
        case Test.AT_MOST:
            return f"at_least({expected}, {found})"
        case _:
            return f"set({found}) and {found} ~= {expected}"


def _is_fixed(predicate: FieldPredicate) -> bool:
    return isinstance(predicate.operand, Fixed)


def _values(predicate: FieldPredicate) -> tuple[object, ...]:
    return tuple(predicate.operand.value) if isinstance(predicate.operand, Fixed) else ()


def _operand(operand: Operand) -> str:
    match operand:
        case FieldOf(path=path, default=None):
            return _at(path)
        case FieldOf(path=path, default=other):
            return f"default({_at(path)}, {_literal(other)})"
        case Fixed(value=value):
            return _literal(value)
        case _:
            raise ValueError(operand)  # `health_rule` takes no captured value


def _at(path: Path) -> str:
    return f"at({', '.join(map(_literal, path))})"


def _literal(value: object) -> str:
    """JSON's texts are Lua's, except for escapes that no rule has."""
    return "nil" if value is None else json.dumps(value)
