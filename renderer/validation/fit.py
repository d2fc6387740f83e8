"""Checks whether a value fits a JSON Schema: yes or no, quickly, without loading jsonschema.

Importing jsonschema takes longer than rendering a plan, and nearly all documents fit; so it is asked only to explain
what does not. The words known here are a subset of JSON Schema 2020-12 with the meaning they have there; `is_known`
checks whether a schema uses only these, and `validate` uses jsonschema for all others. A property test holds both
to the same answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

Schema = Mapping[str, Any]


def fits(value: Any, schema: Schema | bool, root: Schema) -> bool:
    """True if `value` fits. `root` is where `$ref` looks; every word must be known."""
    if isinstance(schema, bool):
        return schema
    for word, expected in schema.items():
        rule = _RULES.get(word)
        if rule is not None and not rule(expected, value, schema, root):
            return False
    return True


def is_known(schema: Any) -> bool:
    """True if a schema has only words that `fits` gives their full meaning."""
    if isinstance(schema, bool):
        return True
    return isinstance(schema, Mapping) and all(_is_known_word(word, value) for word, value in schema.items())


@lru_cache(maxsize=256)
def regex(pattern: str) -> re.Pattern[str]:
    """A pattern as ECMA-262 and Go mean it: `$` is the very end, and digits and letters are those of ASCII."""
    return re.compile(re.sub(r"(?<!\\)\$(?=\)|$)", r"\\Z", pattern), re.ASCII)


def repeated(items: Iterable[Any], key: Callable[[Any], Any]) -> int | None:
    """Index of the first item whose key has stood before; None if all differ."""
    seen: set[Any] = set()
    for index, item in enumerate(items):
        mark = _frozen(key(item))
        if mark in seen:
            return index
        seen.add(mark)
    return None


def map_key(names: Iterable[str]) -> Callable[[Any], Any]:
    """The key of an item of a `listType: map`."""
    return lambda item: [item.get(name) for name in names] if isinstance(item, Mapping) else item


def _is_known_word(word: str, value: Any) -> bool:
    if word in ("properties", "$defs"):
        return all(is_known(schema) for schema in value.values())
    if word in ("items", "additionalProperties", "propertyNames", "not", "if", "then", "else"):
        return is_known(value)
    if word in ("allOf", "anyOf", "oneOf"):
        return all(is_known(schema) for schema in value)
    if word == "$ref":
        return str(value).startswith("#/")
    return word in _RULES or word in _NO_RULE


_NO_RULE = {
    "$schema", "$id", "$comment", "title", "description", "default", "examples", "format", "writeOnly", "x-message",
    "x-remedy", "then", "else",
}  # fmt: skip
"""Keywords that do not constrain a value by themselves."""


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and (isinstance(value, int) or value.is_integer()),
    "number": _is_number,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


def _type(expected: Any, value: Any, _: Schema, __: Schema) -> bool:
    if isinstance(expected, str):
        return _TYPES[expected](value)
    return any(_TYPES[name](value) for name in expected)


def _additional(expected: Any, value: Any, schema: Schema, root: Schema) -> bool:
    known = schema.get("properties", {})
    return not isinstance(value, dict) or all(
        fits(item, expected, root) for name, item in value.items() if name not in known
    )


def _properties(expected: Any, value: Any, _: Schema, root: Schema) -> bool:
    if not isinstance(value, dict):
        return True
    for name, item in value.items():
        schema = expected.get(name)
        if schema is not None and not fits(item, schema, root):
            return False
    return True


def _reference(expected: str, value: Any, _: Schema, root: Schema) -> bool:
    target: Any = root
    for step in expected.removeprefix("#/").split("/"):
        target = target[step.replace("~1", "/").replace("~0", "~")]
    return fits(value, target, root)


def _dependent(expected: Any, value: Any, _: Schema, __: Schema) -> bool:
    return not isinstance(value, dict) or all(
        name in value for given, names in expected.items() if given in value for name in names
    )


def _frozen(value: Any) -> Any:
    """Equal for what JSON Schema calls equal: 1 and 1.0 are, 1 and true are not."""
    if isinstance(value, dict):
        return frozenset((key, _frozen(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    return (isinstance(value, bool), value)


def _same(left: Any, right: Any) -> bool:
    return bool(_frozen(left) == _frozen(right))


_RULES: dict[str, Callable[[Any, Any, Schema, Schema], bool]] = {
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "$ref": _reference,
    "dependentRequired": _dependent,
    "required": lambda names, value, _, __: not isinstance(value, dict) or all(name in value for name in names),
    "propertyNames": lambda schema, value, _, root: (
        not isinstance(value, dict) or all(fits(name, schema, root) for name in value)
    ),
    "minProperties": lambda least, value, _, __: not isinstance(value, dict) or len(value) >= least,
    "maxProperties": lambda most, value, _, __: not isinstance(value, dict) or len(value) <= most,
    "items": lambda schema, value, _, root: (
        not isinstance(value, list) or all(fits(item, schema, root) for item in value)
    ),
    "minItems": lambda least, value, _, __: not isinstance(value, list) or len(value) >= least,
    "maxItems": lambda most, value, _, __: not isinstance(value, list) or len(value) <= most,
    "uniqueItems": lambda expected, value, _, __: (
        not (expected and isinstance(value, list)) or repeated(value, lambda item: item) is None
    ),
    "x-kubernetes-list-map-keys": lambda names, value, _, __: (
        not isinstance(value, list) or repeated(value, map_key(names)) is None
    ),
    "enum": lambda values, value, _, __: any(_same(value, expected) for expected in values),
    "const": lambda expected, value, _, __: _same(value, expected),
    "pattern": lambda pattern, value, _, __: not isinstance(value, str) or bool(regex(pattern).search(value)),
    "minLength": lambda least, value, _, __: not isinstance(value, str) or len(value) >= least,
    "maxLength": lambda most, value, _, __: not isinstance(value, str) or len(value) <= most,
    "minimum": lambda least, value, _, __: not _is_number(value) or value >= least,
    "maximum": lambda most, value, _, __: not _is_number(value) or value <= most,
    "allOf": lambda schemas, value, _, root: all(fits(value, schema, root) for schema in schemas),
    "anyOf": lambda schemas, value, _, root: any(fits(value, schema, root) for schema in schemas),
    "oneOf": lambda schemas, value, _, root: sum(fits(value, schema, root) for schema in schemas) == 1,
    "not": lambda schema, value, _, root: not fits(value, schema, root),
    "if": lambda condition, value, schema, root: fits(
        value, schema.get("then" if fits(value, condition, root) else "else", True), root
    ),
}
