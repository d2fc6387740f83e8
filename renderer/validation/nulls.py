"""Removes keys without a value, as the API server does."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

Schema = dict[str, Any]

_TYPED = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
"""The keyword that a structural schema has in place of a type."""


def without_nulls(value: Any, schema: Any, defs: Mapping[str, Any] = MappingProxyType({})) -> Any:
    """A value as the API server stores it: a null where none is allowed counts as if the key had been left out.

    It does so for the keys of mappings, not for items of lists, and not where a default takes its place. `schema` is a
    structural schema or a JSON Schema, `defs` has what it refers to. A part in which nothing changes is returned as it
    is, not copied.
    """
    schema = _referred(schema, defs)
    if isinstance(value, list):
        items = _part(schema, "items")
        return _unless_same(value, [without_nulls(item, items, defs) for item in value])
    if not isinstance(value, dict):
        return value
    parts = {key: _referred(_below(schema, key), defs) for key in value}
    kept = {
        key: without_nulls(item, parts[key], defs) for key, item in value.items() if not _is_left_out(item, parts[key])
    }
    return _unless_same(value, kept)


def _referred(schema: Any, defs: Mapping[str, Any]) -> Any:
    """The schema itself, or the definition that it refers to."""
    name = _part(schema, "$ref")
    return defs.get(name.removeprefix("#/$defs/"), schema) if name else schema


def _unless_same(value: Any, made: Any) -> Any:
    """`made`, or `value` where it has the very same parts."""
    parts, others = (value.values(), made.values()) if isinstance(value, dict) else (value, made)
    return value if len(value) == len(made) and all(map(operator.is_, parts, others)) else made


def _below(schema: Any, key: str) -> Any:
    properties = _part(schema, "properties") or {}
    return properties.get(key, _part(schema, "additionalProperties"))


def _part(schema: Any, word: str) -> Any:
    return schema.get(word) if isinstance(schema, Mapping) else None


def _is_left_out(item: Any, schema: Any) -> bool:
    """A key that the schema does not know stays, to be refused."""
    if item is not None or not isinstance(schema, Mapping) or schema.get("nullable") or "default" in schema:
        return False
    return "null" not in schema["type"] if "type" in schema else any(word in schema for word in _TYPED)
