"""What the API server makes of a built-in object by reading it into Go structs, filling defaults, writing it out again.

`hostNetwork: false` vanishes, `replicas: 0` stays, `status: {}` appears, quantities take their canonical form. Which
field does what is a table made from the Go sources (`go_types.json`, by `tests/conformance/go_types.py`); the defaults
are in `builtin_defaults`. Unknown fields must have been refused before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from reconcile.rehearsal.builtin_defaults import CONTENT, VALUES
from reconcile.rehearsal.quantity import canonical
from reconcile.rehearsal.shape import Schema

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_ZERO_OF_NAME = {"Quantity": "0", "IntOrString": 0}
_ZERO_OF_TYPE: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


@lru_cache(maxsize=1)
def go_table() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """By definition: the names that are `pointer`, `struct` or `always`; any other field goes when it is zero."""
    text = (files("reconcile.rehearsal") / "go_types.json").read_text(encoding="utf-8")
    return {name: {how: frozenset(fields) for how, fields in row.items()} for name, row in json.loads(text).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    fill: bool = True
    empty_is_null: bool = False


_BLANK, _REQUESTED, _STORED = _How(fill=False), _How(), _How(empty_is_null=True)


class GoTypes:
    """The built-in definitions as Go structs."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._table = go_table()

    def blank(self, name: str) -> dict[str, Any]:
        """The struct that says nothing, as ownership of a new object is compared with it."""
        return self._struct(name, {}, _BLANK)

    def read(self, name: str, value: Mapping[str, Any], *, empty_is_null: bool = False) -> dict[str, Any]:
        """The value with its defaults. The store does not tell an empty list from none: then `empty_is_null`."""
        return self._struct(name, value, _STORED if empty_is_null else _REQUESTED)

    def _struct(self, name: str, value: Mapping[str, Any], how: _How) -> dict[str, Any]:
        row = self._table.get(name, {})
        out: dict[str, Any] = {}
        for field, schema in self._definitions[name]["properties"].items():
            given = value.get(field)
            made = self._field(schema, given, _handling(row, field), how)
            if made is not _DROPPED:
                out[field] = made
        return self._filled(name, out) if how.fill else out

    def _field(self, schema: Schema, given: Any, handling: str, how: _How) -> Any:
        if given is None:
            if handling == "struct":
                return self._zero_struct(schema, how)
            return _zero(schema) if handling == "always" else _DROPPED
        made = self._value(schema, given, how)
        if how.empty_is_null and handling == "always" and made in _EMPTIES:
            return None
        return _DROPPED if not handling and made in _ZEROES else made

    def _value(self, schema: Schema, given: Any, how: _How) -> Any:
        name = _ref(schema)
        if name == _QUANTITY:
            return canonical(given)
        if name and "properties" in self._definitions[name]:
            return self._struct(name, given or {}, how)
        if isinstance(given, list) and "items" in schema:
            return [self._value(schema["items"], item, how) for item in given]
        additional = schema.get("additionalProperties")
        if isinstance(given, dict) and isinstance(additional, Mapping):
            return {key: self._value(additional, item, how) for key, item in given.items()}
        return given

    def _zero_struct(self, schema: Schema, how: _How) -> Any:
        name = _ref(schema)
        if "properties" in self._definitions[name]:
            return self._struct(name, {}, how)
        return _ZERO_OF_NAME.get(name.rpartition(".")[2])

    def _filled(self, name: str, out: dict[str, Any]) -> dict[str, Any]:
        short = name.removeprefix("io.k8s.api.")
        for field, value in VALUES.get(short, {}).items():
            if out.get(field) in _UNSET:
                out[field] = value
        content = CONTENT.get(short)
        return content(out) if content else out


_DROPPED: Any = object()
_EMPTIES: tuple[Any, ...] = ({}, [])
_UNSET: tuple[Any, ...] = (None, "")
_ZEROES: tuple[Any, ...] = (None, "", 0, {}, [])


def _handling(row: Mapping[str, frozenset[str]], field: str) -> str:
    return next((how for how, fields in row.items() if field in fields), "")


def _ref(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _zero(schema: Schema) -> Any:
    found: Any = schema.get("type") or ""
    return _ZERO_OF_TYPE.get(found if isinstance(found, str) else found[0])
