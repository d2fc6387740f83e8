"""Sets of fields, as server-side apply counts them, and their `FieldsV1` form.

A set is a frozenset of paths; a path is a tuple of elements, each in the very text that `FieldsV1` uses for it:
`f:<name>`, `k:<keys as JSON>`, `v:<value as JSON>`. A path that is in the set is owned; its parents need not be. Union,
intersection and difference are Python's own. Source: sigs.k8s.io/structured-merge-diff, package fieldpath. This room
knows neither schemas nor managers.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

Path = tuple[str, ...]
FieldSet = frozenset[Path]

EMPTY: FieldSet = frozenset()

_HTML_ESCAPES = str.maketrans({c: f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"})
_RANKS = {"f": 0, "k": 1, "v": 2, "i": 3}


def field(name: str) -> str:
    return f"f:{name}"


def key(values: Mapping[str, Any]) -> str:
    """The element of a list item that is identified by its keys; the order of the keys does not matter."""
    ordered = tuple(sorted(values.items()))
    return _key_of_texts(ordered) if all(type(value) is str for value in values.values()) else _key(ordered)


def member(value: Any) -> str:
    """The element of an item of a set of scalars."""
    return "v:" + _json(value)


def with_prefixes(paths: Iterable[Path]) -> FieldSet:
    """Every proper parent of the paths."""
    return frozenset(path[:end] for path in paths for end in range(1, len(path)))


def without_below(fields: FieldSet, removed: FieldSet) -> FieldSet:
    """The rest of `fields` when each path of `removed` goes with all that is below it."""
    if not removed:
        return fields
    longest = max(map(len, removed))
    return frozenset(
        path for path in fields if not any(path[:end] in removed for end in range(1, min(len(path), longest) + 1))
    )


def to_fields_v1(fields: FieldSet) -> dict[str, Any]:
    """The nested form in which `metadata.managedFields[].fieldsV1` writes a set, in the server's order."""
    root: dict[str, Any] = {}
    for path in fields:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return {element: _without_lone_dot(child) for element, child in sorted(root.items(), key=_first)}


def from_fields_v1(nested: Mapping[str, Any]) -> FieldSet:
    return frozenset(_paths(nested, ()))


def path_text(path: Path) -> str:
    """A path as conflict messages write it: `.spec.template.spec.containers[name="main"].image`."""
    return "".join(map(_element_text, path))


def order(path: Path) -> tuple[Any, ...]:
    """The server's order of paths: fields before keys before values, each by its name."""
    return tuple(_element_order(element) for element in path)


def _key(ordered: tuple[tuple[str, Any], ...]) -> str:
    return "k:" + _json(dict(ordered))


_key_of_texts = lru_cache(maxsize=4096)(_key)
"""The same few conditions, containers and ports are identified in every object of a kind."""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).translate(_HTML_ESCAPES)


def _without_lone_dot(node: dict[str, Any]) -> dict[str, Any]:
    if len(node) == 1 and "." in node:
        return {}
    return {
        name: child if name == "." else _without_lone_dot(child) for name, child in sorted(node.items(), key=_first)
    }


def _first(item: tuple[str, Any]) -> tuple[Any, ...]:
    return (-1,) if item[0] == "." else _element_order(item[0])


def _paths(nested: Mapping[str, Any], prefix: Path) -> Iterable[Path]:
    for element, child in nested.items():
        if element == ".":
            yield prefix
            continue
        path = (*prefix, _canonical(element))
        if not child:
            yield path
        yield from _paths(child, path)


def _canonical(element: str) -> str:
    if element.startswith("k:"):
        return key(json.loads(element[2:]))
    return member(json.loads(element[2:])) if element.startswith("v:") else element


def _element_text(element: str) -> str:
    kind, text = element[0], element[2:]
    if kind == "f":
        return f".{text}"
    if kind == "k":
        return "[" + ",".join(f"{name}={json.dumps(value)}" for name, value in json.loads(text).items()) + "]"
    return f"[={text}]" if kind == "v" else f"[{text}]"


@lru_cache(maxsize=4096)
def _element_order(element: str) -> tuple[Any, ...]:
    kind, text = element[0], element[2:]
    if kind == "f":
        return (0, text)
    value = json.loads(text)
    parts = tuple((name, *_value_order(part)) for name, part in value.items()) if kind == "k" else _value_order(value)
    return (_RANKS[kind], *parts)


def _value_order(value: Any) -> tuple[int, Any]:
    """Numbers before text before booleans, as structured-merge-diff compares values."""
    if isinstance(value, bool):
        return (2, value)
    return (0, value) if isinstance(value, int | float) else (1, str(value))
