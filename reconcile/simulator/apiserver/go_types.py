"""Reads a built-in object into Go structs, fills defaults, and writes it out again, as the API server does.

`hostNetwork: false` vanishes, `replicas: 0` stays, `status: {}` appears, quantities take their canonical form. Which
field does what is a table made from the Go sources (`go_types.json`, by `tests/conformance/go_types.py`); the defaults
are in `builtin_defaults`. Unknown fields must have been refused before.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from importlib.resources import files
from typing import Any

from reconcile.simulator.apiserver.builtin_defaults import CONTENT, VALUES, Content
from reconcile.simulator.apiserver.shape import Schema
from renderer.model.sharing import ByIdentity
from renderer.quantity import canonical

_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_ZERO_OF_NAME = {"Quantity": "0", "IntOrString": 0}
_ZERO_OF_TYPE: dict[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False}


@lru_cache(maxsize=1)
def go_table() -> Mapping[str, Mapping[str, frozenset[str]]]:
    """By definition: the names that are `pointer`, `struct` or `always`; any other field goes when it is zero."""
    text = (files("reconcile.simulator.apiserver") / "go_types.json").read_text(encoding="utf-8")
    return {name: {how: frozenset(fields) for how, fields in row.items()} for name, row in json.loads(text).items()}


class _How(Enum):
    """The purpose for which a struct is read: as an empty one, from a request, or to be stored."""

    BLANK = "blank"
    REQUESTED = "requested"
    STORED = "stored"

    __hash__ = object.__hash__


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
        self._unchanged = ByIdentity[bool]()

    def blank(self, name: str) -> dict[str, Any]:
        """The empty struct, as ownership of a new object is compared with it."""
        return self._read(name, {}, _How.BLANK)

    def read(self, name: str, value: Mapping[str, Any], *, empty_is_null: bool = False) -> dict[str, Any]:
        """The value with its defaults. The store does not tell an empty list from none: then `empty_is_null`."""
        return self._read(name, value, _How.STORED if empty_is_null else _How.REQUESTED)

    def _read(self, name: str, value: Mapping[str, Any], how: _How) -> dict[str, Any]:
        """The very value where reading changes nothing: then what was worked out for it stays right."""
        if not isinstance(value, dict) or self._unchanged.get(value, (name, how)):
            return value if isinstance(value, dict) else self._out(name, value, how)
        out = self._out(name, value, how)
        if len(out) != len(value) or not all(map(_is_same, out.items(), value.items())):
            return out
        if len(value) > _FEW:
            self._unchanged.put(value, found=True, purpose=(name, how))
        return value

    def _out(self, name: str, value: Mapping[str, Any], how: _How) -> dict[str, Any]:
        struct = self._struct(name)
        out = dict(_given(struct.fields, value, how))
        for field in struct.forced:
            if field not in out:
                out[field] = struct.fields[field].zero(how)
        if how is _How.BLANK:
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


_FEW = 2
"""Fields that are read again sooner than looked up."""
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
            empty = how is _How.STORED and field.handling == "always" and made in _EMPTIES
            yield name, None if empty else made


def _is_same(made: tuple[str, Any], given: tuple[str, Any]) -> bool:
    """The same name, and the same value down to its type and the order of names in it."""
    if made[0] != given[0]:
        return False
    return made[1] is given[1] or (type(made[1]) is type(given[1]) is str and made[1] == given[1])


def _list_reader(item: Read) -> Read:
    def read(value: Any, how: _How) -> Any:
        made = [item(each, how) for each in value]
        return value if all(one is other for one, other in zip(made, value, strict=True)) else made

    return read


def _map_reader(item: Read) -> Read:
    def read(value: Any, how: _How) -> Any:
        made = {key: item(each, how) for key, each in value.items()}
        return value if all(map(_is_same, made.items(), value.items())) else made

    return read


def _ref(schema: Schema) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def _type(schema: Schema) -> str:
    found: Any = schema.get("type") or ""
    return found if isinstance(found, str) else str(found[0])
