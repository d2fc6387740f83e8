"""Reads a page of a list: of each object no more than is kept becomes a value, and the rest is skipped as text.

Most of a page's cost is in making values, so this is what lets a large cluster be looked at in seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from renderer.model.path import Path

_Tree = dict[str, Any]


def read_page(content: bytes, paths: tuple[Path, ...]) -> Mapping[str, Any] | None:
    """`metadata` and `items` of a list, of each item these paths, in each entry of a list on the way. None for what is
    no such page, or has a value of another shape on the way: then it has to be read whole."""
    try:
        page: Mapping[str, Any] = msgspec.to_builtins(_decoder(paths).decode(content))
    except msgspec.DecodeError:
        return None
    return page


@lru_cache
def _decoder(paths: tuple[Path, ...]) -> msgspec.json.Decoder[Any]:
    tree: _Tree = {}
    for path in paths:
        _add(tree, path)
    item: Any = _struct(tree)
    about = _struct({"continue": None, "resourceVersion": None})
    return msgspec.json.Decoder(_with_fields({"metadata": about, "items": list[item] | None}))


def _add(tree: _Tree, path: Path) -> None:
    *way, last = map(str, path)
    below: Any = tree
    for step in way:
        below = below.setdefault(step, {})
    below[last] = None


def _struct(tree: _Tree) -> type[msgspec.Struct]:
    return _with_fields({key: _value(below) for key, below in tree.items()})


def _value(below: _Tree | None) -> Any:
    """Anything at the end of a path; on the way a mapping, or a list of them."""
    if below is None:
        return Any
    struct = _struct(below)
    scalar = str | int | float | bool | None
    return struct | list[struct | scalar] | scalar  # type: ignore[valid-type]


def _with_fields(types: Mapping[str, Any]) -> type[msgspec.Struct]:
    """A mapping with these keys, each if it is there. Fields have names of their own, since keys need be no names."""
    keys = {f"field{number}": key for number, key in enumerate(types)}
    fields: Iterable[Any] = (
        (name, types[key] | msgspec.UnsetType if types[key] is not Any else Any, msgspec.UNSET)
        for name, key in keys.items()
    )
    return msgspec.defstruct("Kept", fields, rename=keys, gc=False)
