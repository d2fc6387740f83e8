"""The options of a borrowed manifest that change how its fields are written and given back: one row each.

A row reads the option's declaration and describes it in index.yaml. `reconcile.borrow.strategies` carries it out, in a
row of the same name; nothing here looks at an object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from renderer.frozen import frozen
from renderer.model.manifest_spec import BorrowOption, Union
from renderer.model.path import parse_path, path_name


@frozen
class BorrowOptionSpec:
    """`read` makes the option from the value of its key (None: the key changes nothing); `index` is its entry in
    index.yaml."""

    read: Callable[[Any], BorrowOption | None]
    index: Callable[[BorrowOption], Mapping[str, Any]]


def _raise_only(raw: bool) -> BorrowOption | None:
    return BorrowOption(name="raiseOnly") if raw else None


def _union(raw: Mapping[str, Any]) -> BorrowOption:
    union = Union(keys=tuple(raw["keys"]), values=raw["values"])
    return BorrowOption(name="union", path=parse_path(raw["path"]), argument=union)


BORROW_OPTIONS: Mapping[str, BorrowOptionSpec] = {
    "raiseOnly": BorrowOptionSpec(read=_raise_only, index=lambda option: {"raiseOnly": True}),
    "union": BorrowOptionSpec(read=_union, index=lambda option: {"union": path_name(option.path)}),
}
"""By the option's key in `phase.yaml`."""


def borrow_options_from(raw: Mapping[str, Any]) -> tuple[BorrowOption, ...]:
    """Raises `PathError`."""
    read = (spec.read(raw[key]) for key, spec in BORROW_OPTIONS.items() if key in raw)
    return tuple(option for option in read if option is not None)
