"""The walks over values that a shape guides: check, compare, merge, remove, and the set of fields of a value.

Pure; a value is never changed in place, and unchanged parts are shared between input and output. ABSENT is "not there",
which None (null) is not. Source of the rules, case by case: sigs.k8s.io/structured-merge-diff, package typed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import Any, Final, Literal

from reconcile.simulator.apiserver.field_set import FieldSet, Path, field, key, member, path_text, with_prefixes
from reconcile.simulator.apiserver.shape import ListShape, MapShape, Shape


class _Absent(Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
_NUMBERS = (int, float)


class ShapeError(ValueError):
    """A value does not fit its shape. The text is `.path: what is wrong`, as the API server words it."""


def deduce(shape: Shape, value: Any) -> Shape:
    """The one part of the shape that the value's own type picks; all of it for null and ABSENT."""
    if isinstance(value, dict):
        return shape.part("map")
    if isinstance(value, list):
        return shape.part("list")
    return shape if value is None or value is ABSENT else shape.part("scalar")


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: a boolean is not a number."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def element_of(items: ListShape, item: Any) -> str:
    """The path element of one item of a set or of a list with keys."""
    if not items.keys:
        if isinstance(item, dict | list) or item is None:
            raise ShapeError("associative list without keys has an element that is no scalar")
        return member(item)
    if not isinstance(item, dict):
        raise ShapeError("associative list with keys may not have non-map elements")
    shape = items.element()
    found = {name: item.get(name, shape.key_default(name)) for name in items.keys}
    present = {name: value for name, value in found.items() if value is not None}
    if not present:
        raise ShapeError(f"associative list with keys has an element that omits all key fields {list(items.keys)}")
    return key(present)


def check(shape: Shape, value: Any, *, duplicates: bool) -> None:
    """Raises ShapeError for the first undeclared field, wrong type, or (unless allowed) duplicate item."""
    for path, error in _errors(shape, value, (), duplicates):
        raise ShapeError(f"{path_text(path)}: {error}")


def field_set(shape: Shape, value: Any) -> FieldSet:
    """Every field that a manager who applies this value owns."""
    return frozenset(_fields(shape, value, ()))


def remove(shape: Shape, value: Any, fields: FieldSet) -> Any:
    """The value without the fields; null where a map or list loses its last member, as the API server leaves it."""
    return _remove(shape, value, fields, with_prefixes(fields), ()) if fields else value


def _errors(shape: Shape, value: Any, path: Path, duplicates: bool) -> Iterator[tuple[Path, str]]:
    part = deduce(shape, value)
    if value is None:
        return
    if part.map:
        yield from _map_errors(part.map, value, path, duplicates)
    elif part.scalar:
        if not _scalar_fits(part.scalar, value):
            yield path, f"expected {part.scalar}, got {value!r}"
    elif part.list:
        yield from _list_errors(part.list, value, path, duplicates)


def _map_errors(part: MapShape, value: Any, path: Path, duplicates: bool) -> Iterator[tuple[Path, str]]:
    if not isinstance(value, dict):
        yield path, f"expected map, got {value!r}"
        return
    for name, item in value.items():
        below = part.at(name)
        if below is None:
            yield (*path, field(name)), "field not declared in schema"
            return
        yield from _errors(below, item, (*path, field(name)), duplicates)


def _list_errors(part: ListShape, value: Any, path: Path, duplicates: bool) -> Iterator[tuple[Path, str]]:
    if not isinstance(value, list):
        yield path, f"expected list, got {value!r}"
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        try:
            element = f"i:{index}" if part.atomic else element_of(part, item)
        except ShapeError as error:
            yield path, f"element {index}: {error}"
            return
        if element in seen and not duplicates:
            yield path, f"duplicate entries for key {path_text((element,))}"
        seen.add(element)
        yield from _errors(part.element(), item, (*path, element), duplicates)


def _scalar_fits(scalar: Literal["string", "numeric", "boolean", "untyped"], value: Any) -> bool:
    if scalar == "numeric":
        return isinstance(value, _NUMBERS) and not isinstance(value, bool)
    if scalar == "untyped":
        return not isinstance(value, dict | list)
    return isinstance(value, str if scalar == "string" else bool)


def _fields(shape: Shape, value: Any, path: Path) -> Iterator[Path]:
    part = deduce(shape, value)
    if part.map:
        if part.map.atomic:
            yield from _self(path)
        elif isinstance(value, dict):
            yield from _map_fields(part.map, value, path)
    elif part.scalar:
        yield from _self(path)
    elif part.list:
        if part.list.atomic:
            yield from _self(path)
        elif isinstance(value, list):
            yield from _list_fields(part.list, value, path)


def _self(path: Path) -> Iterator[Path]:
    if path:
        yield path


def _map_fields(part: MapShape, value: dict[str, Any], path: Path) -> Iterator[Path]:
    for name, item in value.items():
        below, here = part.at(name), (*path, field(name))
        if below is None:
            raise ShapeError(f"{path_text(here)}: field not declared in schema")
        yield from _fields(below, item, here)
        if item is None or item == {} or name not in part.fields:
            yield here


def _list_fields(part: ListShape, value: list[Any], path: Path) -> Iterator[Path]:
    elements = [element_of(part, item) for item in value]
    doubled = {element for element, count in Counter(elements).items() if count > 1}
    for element, item in zip(elements, value, strict=True):
        if element not in doubled:
            yield from _fields(part.element(), item, (*path, element))
        yield (*path, element)


def _remove(shape: Shape, value: Any, fields: FieldSet, parents: FieldSet, path: Path) -> Any:
    part = deduce(shape, value)
    if part.map:
        return _map_without(part.map, value, fields, parents, path)
    if part.scalar:
        return value
    return _list_without(part.list, value, fields, parents, path) if part.list else None


def _map_without(part: MapShape, value: Any, fields: FieldSet, parents: FieldSet, path: Path) -> Any:
    if not value or part.atomic or not isinstance(value, dict):
        return None
    left: dict[str, Any] = {}
    for name, item in value.items():
        here = (*path, field(name))
        if here in fields:
            continue
        below = part.at(name)
        left[name] = _remove(below, item, fields, parents, here) if below and here in parents else item
    return left or None


def _list_without(part: ListShape, value: Any, fields: FieldSet, parents: FieldSet, path: Path) -> Any:
    if not value or part.atomic or not isinstance(value, list):
        return None
    left = [
        _remove(part.element(), item, fields, parents, here) if here in parents else item
        for here, item in _located(part, value, path)
        if here not in fields
    ]
    return left or None


def _located(part: ListShape, value: Iterable[Any], path: Path) -> Iterator[tuple[Path, Any]]:
    for item in value:
        yield (*path, element_of(part, item)), item
