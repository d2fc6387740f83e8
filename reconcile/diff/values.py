"""When two values are the same, and when a live value is good enough for a wanted one. No schemas, no objects here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from renderer.model.path import ABSENT


def same(left: Any, right: Any) -> bool:
    """Equal as JSON: unlike Python, true is not 1. Most values that are equal are also written alike, at once."""
    if left != right:
        return False
    if repr(left) == repr(right):
        return True
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) == isinstance(right, bool)


def satisfies(live: Any, wanted: Any) -> bool:
    """Whether `live` has all that `wanted` says; what a server has filled in besides does not count against it.

    A wanted null is satisfied by absence. Lists must have as many items as wanted, each good enough in its place.
    """
    if wanted is None:
        return live is None or live is ABSENT
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(satisfies(live.get(key, ABSENT), item) for key, item in wanted.items())
    if isinstance(wanted, list | tuple):
        return isinstance(live, list | tuple) and len(live) == len(wanted) and all(map(satisfies, live, wanted))
    return same(live, wanted)
