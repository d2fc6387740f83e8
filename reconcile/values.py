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


def satisfies(live: Any, wanted: Any, is_quantity: IsQuantity | None = None, path: Path = ()) -> bool:
    """True if `live` has all that `wanted` says; what a server has filled in besides does not count against it.

    A wanted null is satisfied by absence. Lists must have as many items as expected, each good enough in its place.
    """
    if wanted is None:
        return live is None or live is ABSENT
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            satisfies(live.get(key, ABSENT), item, is_quantity, (*path, key)) for key, item in wanted.items()
        )
    if isinstance(wanted, list | tuple):
        return (
            isinstance(live, list | tuple)
            and len(live) == len(wanted)
            and all(satisfies(live[index], item, is_quantity, (*path, index)) for index, item in enumerate(wanted))
        )
    return same(live, wanted, is_quantity, path)


def _amount_to_the_same(left: Any, right: Any) -> bool:
    amount = quantity_of(left)
    return amount is not None and amount == quantity_of(right)
