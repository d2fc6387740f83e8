"""The fields of a partial object, where they stand in a live one, and how a change of them is written. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.borrow.loan import pointer
from renderer.model.path import ABSENT, Path
from renderer.model.ref import Body

_IDENTITY: tuple[Path, ...] = (("apiVersion",), ("kind",), ("metadata", "name"), ("metadata", "namespace"))

Assignments = Mapping[Path, Any]
"""The values to write, by path; ABSENT removes. The parent of each path is a mapping in the live object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """One write: a JSON merge patch, or (where `merge` is None) a JSON patch."""

    merge: Body | None = None
    operations: tuple[Body, ...] = ()


def fields_of(body: Body) -> Iterator[tuple[Path, Any]]:
    """Every field that a partial object sets: scalars, lists as a whole, null, and mappings that are empty."""
    return ((path, value) for path, value in _leaves(body, ()) if path not in _IDENTITY)


def present_at(live: Body, path: Path) -> tuple[Path, Any]:
    """The place and value of `path`, or of its first parent that is not a mapping (ABSENT if missing)."""
    value: Any = live
    for depth, step in enumerate(path, start=1):
        value = value.get(step, ABSENT)
        if not isinstance(value, Mapping):
            return path[:depth], value
    return path, value


def without_nulls(value: Any) -> Any:
    """A new mapping needs no members that mean removal."""
    if not isinstance(value, Mapping):
        return value
    return {key: without_nulls(item) for key, item in value.items() if item is not None}


def patch_of(assignments: Assignments, resource_version: str | None) -> Patch:
    """The write that makes the assignments. With a resourceVersion it is refused once the object has changed.

    A merge patch cannot say null, not even deep within a list (the server takes it out; seen on 1.35.4), so values
    that hold one travel by JSON patch.
    """
    if any(_holds_null(value) for value in assignments.values()):
        return Patch(operations=tuple(_operations(assignments, resource_version)))
    merge: dict[str, Any] = {"metadata": {"resourceVersion": resource_version}} if resource_version else {}
    for path, value in assignments.items():
        parent = merge
        for step in path[:-1]:
            parent = parent.setdefault(str(step), {})
        parent[str(path[-1])] = None if value is ABSENT else value
    return Patch(merge=merge)


def _operations(assignments: Assignments, resource_version: str | None) -> Iterator[Body]:
    if resource_version:
        yield {"op": "add", "path": "/metadata/resourceVersion", "value": resource_version}
    for path, value in assignments.items():
        if value is ABSENT:
            yield {"op": "remove", "path": pointer(path)}
        else:
            yield {"op": "add", "path": pointer(path), "value": value}


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if not isinstance(value, Mapping) or (path and not value):
        yield path, value
        return
    for key, item in value.items():
        yield from _leaves(item, (*path, key))


def _holds_null(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_holds_null, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_holds_null, value))
    return value is None
