"""Removes keys without a value, as the API server does."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from itertools import zip_longest
from types import MappingProxyType
from typing import Any

Schema = dict[str, Any]

_TYPED = ("x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields")
"""The keyword that a structural schema has in place of a type."""


def without_nulls(
    value: Any, schema: Any, defs: Mapping[str, Any] = MappingProxyType({}), *, before: Any = None
) -> Any:
    """A value as the API server stores it: a null where none is allowed counts as if the key had been left out.

    It does so for the keys of mappings, not for items of lists, and not where a default takes its place. `schema` is a
    structural schema or a JSON Schema, `defs` has what it refers to. A part in which nothing changes is returned as it
    is, not copied; a part that is the very same as `before`, the stored value at its place, is not gone through.
    """
    if value is before or not isinstance(value, (dict, list)):
        return value
    schema = _referred(schema, defs)
    if isinstance(value, list):
        items, stored = _part(schema, "items"), before if isinstance(before, list) else []
        pairs = zip_longest(value, stored[: len(value)])
        return _unless_same(value, [without_nulls(item, items, defs, before=then) for item, then in pairs])
    old = before if isinstance(before, dict) else {}
    kept = {key: _kept(item, schema, key, defs, old.get(key)) for key, item in value.items()}
    return _unless_same(value, {key: item for key, item in kept.items() if item is not _LEFT_OUT})


_LEFT_OUT = object()


def _kept(item: Any, schema: Any, key: str, defs: Mapping[str, Any], before: Any) -> Any:
    if item is not None and item is before:
        return item
    below = _referred(_below(schema, key), defs)
    return _LEFT_OUT if _is_left_out(item, below) else without_nulls(item, below, defs, before=before)


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
