"""Reads a built-in object into Go structs, fills defaults, and writes it out again, as the API server does.

`hostNetwork: false` vanishes, `replicas: 0` stays, `status: {}` appears, quantities take their canonical form. Which
field does what is a table made from the Go sources (`go_types.json`, by `tests/conformance/go_types.py`); the defaults
are in `builtin_defaults`. Unknown fields must have been refused before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from reconcile.simulator.apiserver.builtin_defaults import CONTENT, VALUES, Content
from reconcile.simulator.apiserver.shape import Schema
from renderer.quantity import canonical

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_ZERO_OF_NAME = {"Quantity": "0", "IntOrString": 0}
_ZERO_OF_TYPE: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


@lru_cache(maxsize=1)
def go_table() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """By definition: the names that are `pointer`, `struct` or `always`; any other field goes when it is zero."""
    text = (files("reconcile.simulator.apiserver") / "go_types.json").read_text(encoding="utf-8")
    return {name: {how: frozenset(fields) for how, fields in row.items()} for name, row in json.loads(text).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class _How:
    fill: bool = True
    empty_is_null: bool = False


_BLANK, _REQUESTED, _STORED = _How(fill=False), _How(), _How(empty_is_null=True)

Read = Callable[[Any, _How], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """`read` is None for a value that is taken as it is; `zero` makes the value where none is given."""

    handling: str
    read: Read | None
    zero: Callable[[_How], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Struct:
    """`forced` are the fields that are always there."""

    fields: Mapping[str, _Field]
    forced: tuple[str, ...]
    defaults: Mapping[str, Any]
    content: Content | None


class GoTypes:
    """The built-in definitions as Go structs; each is worked out once."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._structs: dict[str, _Struct] = {}

    def blank(self, name: str) -> dict[str, Any]:
        """The empty struct, as ownership of a new object is compared with it."""
        return self._read(name, {}, _BLANK)

    def read(self, name: str, value: Mapping[str, Any], *, empty_is_null: bool = False) -> dict[str, Any]:
        """The value with its defaults. The store does not tell an empty list from none: then `empty_is_null`."""
        return self._read(name, value, _STORED if empty_is_null else _REQUESTED)

    def _read(self, name: str, value: Mapping[str, Any], how: _How) -> dict[str, Any]:
        struct = self._struct(name)
        out = dict(_given(struct.fields, value, how))
        for field in struct.forced:
            if field not in out:
                out[field] = struct.fields[field].zero(how)
        if not how.fill:
            return out
        for field, default in struct.defaults.items():
            if out.get(field) in _UNSET:
                out[field] = default
        return struct.content(out) if struct.content else out

    def _struct(self, name: str) -> _Struct:
        if name not in self._structs:
            row, short = go_table().get(name, {}), name.removeprefix("io.k8s.api.")
            properties: Mapping[str, Schema] = self._definitions[name]["properties"]
            fields = {field: self._field(row, field, schema) for field, schema in properties.items()}
            self._structs[name] = _Struct(
                fields=fields,
                forced=tuple(field for field, made in fields.items() if made.handling in ("struct", "always")),
                defaults=VALUES.get(short, {}),
                content=CONTENT.get(short),
            )
        return self._structs[name]

    def _field(self, row: Mapping[str, frozenset[str]], field: str, schema: Schema) -> _Field:
        handling = next((how for how, fields in row.items() if field in fields), "")
        return _Field(handling=handling, read=self._reader(schema), zero=self._zero(schema, handling))

    def _reader(self, schema: Schema) -> Read | None:
        name = _ref(schema)
        if name == _QUANTITY:
            return lambda value, how: canonical(str(value))
        if name:
            return self._struct_reader(name) if "properties" in self._definitions[name] else None
        if "items" in schema:
            item = self._reader(schema["items"])
            return item and _list_reader(item)
        additional = schema.get("additionalProperties")
        item = self._reader(additional) if isinstance(additional, Mapping) else None
        return item and _map_reader(item)

    def _struct_reader(self, name: str) -> Read:
        return lambda value, how: self._read(name, value or {}, how)

    def _zero(self, schema: Schema, handling: str) -> Callable[[_How], Any]:
        name = _ref(schema)
        if handling == "struct" and "properties" in self._definitions[name]:
            return lambda how: self._read(name, {}, how)
        zero = _ZERO_OF_NAME.get(name.rpartition(".")[2]) if handling == "struct" else _ZERO_OF_TYPE.get(_type(schema))
        return lambda how: zero


_UNSET: tuple[Any, ...] = (None, "")
_EMPTIES: tuple[Any, ...] = ({}, [])


def _given(fields: Mapping[str, _Field], value: Mapping[str, Any], how: _How) -> Iterator[tuple[str, Any]]:
    """The part of the value that the struct keeps."""
    for name, given in value.items():
        field = fields.get(name)
        if field is None or given is None:
            continue
        made = field.read(given, how) if field.read else given
        if made or field.handling:
            empty = how.empty_is_null and field.handling == "always" and made in _EMPTIES
            yield name, None if empty else made


def _list_reader(item: Read) -> Read:
    return lambda value, how: [item(each, how) for each in value]


def _map_reader(item: Read) -> Read:
    return lambda value, how: {key: item(each, how) for key, each in value.items()}


def _ref(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _type(schema: Schema) -> str:
    found: Any = schema.get("type") or ""
    return found if isinstance(found, str) else str(found[0])
