"""Merging an applied value into the live one by shape. Pure; who may do so is decided elsewhere.

Source: sigs.k8s.io/structured-merge-diff, package typed, merge.go: the applied side wins at leaves, maps and keyed
lists keep what only one side has, items keep the order of the live list except where the applied one says otherwise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from reconcile.simulator.apiserver.shape import ListShape, MapShape, Shape
from reconcile.simulator.apiserver.walk import ABSENT, ShapeError, deduce, element_of


def merge(shape: Shape, live: Any, applied: Any) -> Any:
    """The merged value. Either side may be ABSENT, not both."""
    part = deduce(shape, live if applied is ABSENT else applied)
    if part.map:
        return _maps(part.map, live, applied)
    if part.list and not part.scalar:
        return _lists(part.list, live, applied)
    return _leaf(live, applied)


def _leaf(live: Any, applied: Any) -> Any:
    return live if applied is ABSENT else applied


def _maps(part: MapShape, live: Any, applied: Any) -> Any:
    old = live if isinstance(live, dict) else {}
    new = applied if isinstance(applied, dict) else {}
    if part.atomic or not (old or new):
        return _leaf(live, applied)
    if not new:
        return old
    return {name: _named(part, name, old, new) for name in dict.fromkeys((*old, *new))}


def _named(part: MapShape, name: str, old: dict[str, Any], new: dict[str, Any]) -> Any:
    if name not in new:
        return old[name]
    below = part.at(name)
    if below is None:
        raise ShapeError(f".{name}: field not declared in schema")
    return merge(below, old.get(name, ABSENT), new[name])


def _lists(part: ListShape, live: Any, applied: Any) -> Any:
    old = live if isinstance(live, list) else []
    new = applied if isinstance(applied, list) else []
    if part.atomic or not (old or new):
        return _leaf(live, applied)
    return _Zip(part, old, new).merged() if new else old


class _Zip:
    """Two keyed lists on their way to one."""

    def __init__(self, part: ListShape, live: list[Any], applied: list[Any]) -> None:
        self._shape = part.element()
        self._live = deque((element_of(part, item), item) for item in live)
        self._applied = deque((element_of(part, item), item) for item in applied)
        self._wanted = dict(self._applied)
        self._old = _single(self._live)
        self._shared = deque(element for element, _ in self._applied if element in self._old)
        self._done: set[str] = set()

    def merged(self) -> list[Any]:
        out: list[Any] = []
        while self._live or self._applied:
            if self._live and self._applied:
                element = self._live[0][0]
                if element == self._applied[0][0]:
                    self._live.popleft()
                    out.append(self._take_applied())
                    continue
                if element in self._wanted and self._shared and self._shared[0] != element:
                    self._live.popleft()
                    continue
            if self._live:
                element, item = self._live[0]
                if element not in self._wanted:
                    out.append(item)
                    self._live.popleft()
                    continue
                if element in self._done:
                    self._live.popleft()
            if self._applied:
                out.append(self._take_applied())
        return out

    def _take_applied(self) -> Any:
        element, item = self._applied.popleft()
        self._done.add(element)
        if self._shared and self._shared[0] == element:
            self._shared.popleft()
        return merge(self._shape, self._old.get(element, ABSENT), item)


def _single(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Items by element; one that is there twice is null, since nobody can say which of them is meant."""
    found: dict[str, Any] = {}
    for element, item in items:
        found[element] = None if element in found else item
    return found
