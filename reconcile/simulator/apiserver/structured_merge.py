"""Merges an applied value into the live one by shape, and compares two values as sets of fields. Pure.

Ownership of fields is judged elsewhere.
Source: sigs.k8s.io/structured-merge-diff, package typed, merge.go and compare.go. In a merge the applied side wins at
leaves, maps and keyed lists keep what only one side has, items keep the order of the live list except where the applied
one says otherwise.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reconcile.simulator.apiserver.field_set import FieldSet, Path, field, without_below
from reconcile.simulator.apiserver.shape import ListShape, MapShape, Shape
from reconcile.simulator.apiserver.walk import ABSENT, ShapeError, deduce, element_of, same


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
        self._expected = dict(self._applied)
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
                if element in self._expected and self._shared and self._shared[0] != element:
                    self._live.popleft()
                    continue
            if self._live:
                element, item = self._live[0]
                if element not in self._expected:
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
    """Items by element; a duplicate one is null, since it is not known which is meant."""
    found: dict[str, Any] = {}
    for element, item in items:
        found[element] = None if element in found else item
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The fields of one object that differ from those of another."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def changed(self) -> FieldSet:
        return self.added | self.modified

    def without(self, ignored: FieldSet) -> Comparison:
        """The comparison without the ignored fields and all below them."""
        return Comparison(
            added=without_below(self.added, ignored),
            modified=without_below(self.modified, ignored),
            removed=without_below(self.removed, ignored),
        )


def compare(shape: Shape, left: Any, right: Any) -> Comparison:
    """The fields that `right` has more, other or less than `left`. A new map is added, and so is each field in it."""
    walk = _Walk()
    walk.both(shape, left, right, ())
    return Comparison(added=frozenset(walk.added), modified=frozenset(walk.modified), removed=frozenset(walk.removed))


class _Walk:
    def __init__(self) -> None:
        self.added: list[Path] = []
        self.modified: list[Path] = []
        self.removed: list[Path] = []

    def both(self, shape: Shape, left: Any, right: Any, path: Path) -> None:
        if left is right:
            return
        old, new = deduce(shape, left), deduce(shape, right)
        if right is ABSENT or left is ABSENT:
            self._part(old if right is ABSENT else new, left, right, path)
            self._one_sided(left, right, path)
            return
        if old is not new and old != new:
            self._part(old, left, right, path)
        self._part(new, left, right, path)

    def _part(self, part: Shape, left: Any, right: Any, path: Path) -> None:
        if part.map:
            self._maps(part.map, left, right, path)
        elif part.scalar:
            self._leaf(left, right, path)
        elif part.list:
            self._lists(part.list, left, right, path)

    def _one_sided(self, left: Any, right: Any, path: Path) -> None:
        if path:
            (self.added if left is ABSENT else self.removed).append(path)

    def _leaf(self, left: Any, right: Any, path: Path) -> None:
        if left is not ABSENT and right is not ABSENT and path and not same(left, right):
            self.modified.append(path)

    def _maps(self, part: MapShape, left: Any, right: Any, path: Path) -> None:
        old = left if isinstance(left, dict) else {}
        new = right if isinstance(right, dict) else {}
        if part.atomic or not (old or new):
            self._leaf(left, right, path)
            return
        for name in dict.fromkeys((*old, *new)):
            below = part.at(name)
            if below:
                self.both(below, old.get(name, ABSENT), new.get(name, ABSENT), (*path, field(name)))

    def _lists(self, part: ListShape, left: Any, right: Any, path: Path) -> None:
        old = left if isinstance(left, list) else []
        new = right if isinstance(right, list) else []
        if part.atomic or not (old or new):
            self._leaf(left, right, path)
            return
        before, after = _by_element(part, old), _by_element(part, new)
        for element in dict.fromkeys((*before, *after)):
            self._items(part.element(), before.get(element, []), after.get(element, []), (*path, element))

    def _items(self, shape: Shape, old: list[Any], new: list[Any], path: Path) -> None:
        """One item against one item; duplicate items, which only old objects have, are compared as a whole."""
        if len(old) <= 1 and len(new) <= 1:
            self.both(shape, old[0] if old else ABSENT, new[0] if new else ABSENT, path)
        elif len(old) > 1 and len(new) > 1:
            self.modified.extend([path] if old != new else [])
        elif len(old) > 1:
            self._undoubled(shape, new, path)
        else:
            self._doubled(shape, old, path)

    def _undoubled(self, shape: Shape, new: list[Any], path: Path) -> None:
        if new:
            self.both(shape, ABSENT, new[0], path)
        self.removed.append(path)

    def _doubled(self, shape: Shape, old: list[Any], path: Path) -> None:
        if old:
            self.both(shape, old[0], ABSENT, path)
        self.added.append(path)


def _by_element(part: ListShape, items: Iterable[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(element_of(part, item), []).append(item)
    return found
