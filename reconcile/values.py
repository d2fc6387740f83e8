"""Decides if two values of an object's field are the same, and if a live value is as good as the expected one. Pure.

Values are compared as JSON. Quantities are compared by amount, as Kubernetes compares them, but only where the API
declares a quantity: `1` and `1.0` are two values of an annotation, and one value of a container's limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from renderer.model.path import ABSENT, Path
from renderer.quantity import quantity_of

IsQuantity = Callable[[Path], bool]
"""True if the API declares a quantity at a path of the object (`Schemas.quantities_of`)."""


def same(left: Any, right: Any, is_quantity: IsQuantity | None = None, path: Path = ()) -> bool:
    """Equal as JSON: unlike Python, true is not 1. Without `is_quantity` nothing is a quantity; `path` is where in the
    object both stand."""
    if left == right:
        if repr(left) == repr(right):  # most values that are equal
            return True
    elif is_quantity is None:
        return False
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(
            same(left[key], right[key], is_quantity, (*path, key)) for key in left
        )
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(
            same(*pair, is_quantity, (*path, index)) for index, pair in enumerate(zip(left, right, strict=True))
        )
    if left == right:
        return isinstance(left, bool) == isinstance(right, bool)
    return is_quantity is not None and _amount_to_the_same(left, right) and is_quantity(path)


def satisfies(live: Any, expected: Any, is_quantity: IsQuantity | None = None, path: Path = ()) -> bool:
    """True if `live` has all that `expected` says; what a server has filled in besides does not count against it.

    An expected null is satisfied by absence. Lists must have as many items as expected, each good enough in its place.
    """
    if expected is None:
        return live is None or live is ABSENT
    if isinstance(expected, Mapping):
        return isinstance(live, Mapping) and all(
            satisfies(live.get(key, ABSENT), item, is_quantity, (*path, key)) for key, item in expected.items()
        )
    if isinstance(expected, list | tuple):
        return (
            isinstance(live, list | tuple)
            and len(live) == len(expected)
            and all(satisfies(live[index], item, is_quantity, (*path, index)) for index, item in enumerate(expected))
        )
    return same(live, expected, is_quantity, path)


def _amount_to_the_same(left: Any, right: Any) -> bool:
    amount = quantity_of(left)
    return amount is not None and amount == quantity_of(right)
