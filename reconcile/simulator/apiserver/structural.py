"""A custom resource against its structural schema: unknown fields, defaults, and what is invalid. Pure.

Source: k8s.io/apiextensions-apiserver, packages apiserver/schema and apiserver/validation. Of the formats only
date-time is checked. A part in which nothing changes is answered as it is, not copied: comparing two versions
of an object sees at once what they have in common. So does each of these functions: a part that is the very same as
`before`, the stored object's at that place, was gone through when that was written.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from typing import Any

from reconcile.cluster.errors import StatusCause
from reconcile.simulator.apiserver.shape import EMBEDDED, PRESERVE, Schema
from reconcile.simulator.apiserver.walk import ABSENT

INT_OR_STRING = "x-kubernetes-int-or-string"
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_META = ("apiVersion", "kind", "metadata")
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
_FITS: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def unknown_fields(schema: Schema, body: Any, before: Any = ABSENT) -> tuple[str, ...]:
    """The paths that the schema does not declare, in the words of strict decoding: `spec.nodes[0].nam`."""
    return tuple(_unknown(schema, body, "", _META, before))


def pruned(schema: Schema, body: Any, before: Any = ABSENT) -> Any:
    """The body without what the schema does not declare: what a patch leaves there is dropped silently."""
    return _prune(schema, body, _META, before)


def defaulted(schema: Schema, value: Any, before: Any = ABSENT) -> Any:
    """The value with the schema's defaults in it, also in place of a null that is not allowed."""
    if value is before:
        return value
    if isinstance(value, dict):
        return _defaulted_map(schema, value, before)
    items = schema.get("items")
    if isinstance(value, list) and items:
        return _unless_same(value, [defaulted(items, item, old) for item, old in _beside(value, before)])
    return value


def invalid(schema: Schema, value: Any, before: Any = ABSENT, path: str = "") -> Iterator[StatusCause]:
    """Everything that the schema's own words refuse, as a 422 lists it. What was there `before` the write as it is now
    is not judged again (KEP-4008)."""
    if value is before:
        return
    if value is None:
        if not schema.get("nullable") and schema.get("type"):
            yield _cause(
                path, f'Invalid value: "null": {path} in body must be of type {schema["type"]}: "null"', "Type"
            )
        return
    if not _type_fits(schema, value):
        found, expected = _NAMES.get(type(value), "object"), schema.get("type", "integer or string")
        yield _cause(path, f'Invalid value: "{found}": {path} in body must be of type {expected}: "{found}"', "Type")
        return
    for word, rule in _WORDS.items():
        if word in schema:
            yield from rule(schema[word], value, path)
    yield from _children(schema, value, before, path)


def _cause(path: str, message: str, reason: str = "Invalid") -> StatusCause:
    return StatusCause(field=path, message=message, reason=f"FieldValue{'TypeInvalid' if reason == 'Type' else reason}")


def _type_fits(schema: Schema, value: Any) -> bool:
    if schema.get(INT_OR_STRING):
        return isinstance(value, int | str) and not isinstance(value, bool)
    expected = _FITS.get(schema.get("type", ""))
    if expected is None:
        return True
    if isinstance(value, bool):
        return bool in expected
    whole = isinstance(value, float) and value.is_integer() and expected == (int,)
    return whole or isinstance(value, expected)


def _children(schema: Schema, value: Any, before: Any, path: str) -> Iterator[StatusCause]:
    if isinstance(value, dict):
        earlier = _fields_of(before)
        for name, item in value.items():
            if item is (old := earlier.get(name, ABSENT)):
                continue
            below = _below(schema, name)
            if below is not None and not (_is_object(schema, path) and name in _META):
                yield from invalid(below, item, old, f"{path}.{name}" if path else name)
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, (item, old) in enumerate(_beside(value, before)):
            yield from invalid(schema["items"], item, old, f"{path}[{index}]")
        yield from _doubled(schema, value, path)


def _doubled(schema: Schema, value: list[Any], path: str) -> Iterator[StatusCause]:
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind not in ("set", "map"):
        return
    seen: list[Any] = []
    for index, item in enumerate(value):
        key = item if kind == "set" else {name: item.get(name) for name in keys}
        if key in seen:
            yield _cause(f"{path}[{index}]", f"Duplicate value: {key!r}", "Duplicate")
        seen.append(key)


def _is_object(schema: Schema, path: str) -> bool:
    return not path or bool(schema.get(EMBEDDED))


def _below(schema: Schema, name: str) -> Schema | None:
    declared: Schema | None = (schema.get("properties") or {}).get(name)
    if declared is not None:
        return declared
    additional = schema.get("additionalProperties")
    return additional if isinstance(additional, Mapping) else None


def _declares(schema: Schema, name: str) -> bool:
    return _below(schema, name) is not None or schema.get("additionalProperties") is True


def _unknown(schema: Schema, value: Any, path: str, meta: tuple[str, ...], before: Any) -> Iterator[str]:
    if isinstance(value, dict):
        earlier = _fields_of(before)
        for name, item in value.items():
            if item is (old := earlier.get(name, ABSENT)) or name in meta:
                continue
            here = f"{path}.{name}" if path else name
            below = _below(schema, name)
            if below is not None:
                yield from _unknown(below, item, here, _META if below.get(EMBEDDED) else (), old)
            elif not schema.get(PRESERVE) and not _declares(schema, name):
                yield here
    elif isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        for index, (item, old) in enumerate(_beside(value, before)):
            yield from _unknown(schema["items"], item, f"{path}[{index}]", (), old)


def _prune(schema: Schema, value: Any, meta: tuple[str, ...], before: Any) -> Any:
    if value is before:
        return value
    if isinstance(value, dict):
        earlier = _fields_of(before)
        kept = {
            name: item if item is (old := earlier.get(name, ABSENT)) else _kept(schema, name, item, meta, old)
            for name, item in value.items()
        }
        return _unless_same(value, {name: item for name, item in kept.items() if item is not ABSENT})
    if isinstance(value, list) and isinstance(schema.get("items"), Mapping):
        return _unless_same(value, [_prune(schema["items"], item, (), old) for item, old in _beside(value, before)])
    return value


def _kept(schema: Schema, name: str, item: Any, meta: tuple[str, ...], before: Any) -> Any:
    if name in meta:
        return item
    below = _below(schema, name)
    if below is not None:
        return _prune(below, item, _META if below.get(EMBEDDED) else (), before)
    return item if schema.get(PRESERVE) or _declares(schema, name) else ABSENT


def _fields_of(before: Any) -> Mapping[str, Any]:
    return before if isinstance(before, dict) else {}


def _beside(value: list[Any], before: Any) -> Iterator[tuple[Any, Any]]:
    """Each item, and the one that was at its place."""
    earlier = before[: len(value)] if isinstance(before, list) else []
    return zip_longest(value, earlier, fillvalue=ABSENT)


def _defaulted_map(schema: Schema, value: dict[str, Any], before: Any) -> dict[str, Any]:
    out = dict(value)
    for name, member in (schema.get("properties") or {}).items():
        if "default" in member and (name not in out or (out[name] is None and not member.get("nullable"))):
            out[name] = member["default"]
    earlier = _fields_of(before)
    for name, item in out.items():
        if item is (old := earlier.get(name, ABSENT)) or not isinstance(item, dict | list):
            continue
        below = _below(schema, name)
        if below is not None:
            out[name] = defaulted(below, item, old)
    same: dict[str, Any] = _unless_same(value, out)
    return same


def _unless_same(value: Any, made: Any) -> Any:
    """`made`, or `value` where it has the very same parts."""
    parts, others = (value.values(), made.values()) if isinstance(value, dict) else (value, made)
    return value if len(value) == len(made) and all(map(operator.is_, parts, others)) else made


def _required(names: list[str], value: Any, path: str) -> Iterator[StatusCause]:
    if isinstance(value, dict):
        for name in names:
            if name not in value:
                here = f"{path}.{name}" if path else name
                yield _cause(here, "Required value", "Required")


def _enum(allowed: list[Any], value: Any, path: str) -> Iterator[StatusCause]:
    if value not in allowed:
        options = ", ".join(f'"{option}"' for option in allowed)
        yield _cause(path, f'Unsupported value: "{value}": supported values: {options}', "NotSupported")


def _bound(
    fails: Callable[[Any, Any], bool], what: str, reason: str = "Invalid"
) -> Callable[..., Iterator[StatusCause]]:
    def rule(limit: Any, value: Any, path: str) -> Iterator[StatusCause]:
        if fails(limit, value):
            yield _cause(path, f"Invalid value: {value!r}: {path} in body {what.format(limit)}", reason)

    return rule


def _format(name: str, value: Any, path: str) -> Iterator[StatusCause]:
    """Of the formats only this one is checked."""
    if name == "date-time" and isinstance(value, str) and not _DATE_TIME.fullmatch(value):
        text = f'Invalid value: "{value}": {path} in body must be of type date-time: "{value}"'
        yield _cause(path, text, "Type")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_WORDS: Mapping[str, Callable[..., Iterator[StatusCause]]] = {
    "required": _required,
    "enum": _enum,
    "format": _format,
    "minLength": _bound(lambda n, v: isinstance(v, str) and len(v) < n, "should be at least {} chars long"),
    "maxLength": _bound(lambda n, v: isinstance(v, str) and len(v) > n, "should be at most {} chars long", "TooLong"),
    "pattern": _bound(lambda p, v: isinstance(v, str) and not re.search(p, v), "should match '{}'"),
    "minimum": _bound(lambda n, v: _is_number(v) and v < n, "should be greater than or equal to {}"),
    "maximum": _bound(lambda n, v: _is_number(v) and v > n, "should be less than or equal to {}"),
    "minItems": _bound(lambda n, v: isinstance(v, list) and len(v) < n, "should have at least {} items"),
    "maxItems": _bound(lambda n, v: isinstance(v, list) and len(v) > n, "must have at most {} items", "TooMany"),
}
