"""What differs between two values of one shape, as sets of fields. Pure; it judges nobody's ownership.

Source: sigs.k8s.io/structured-merge-diff, package typed, compare.go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from reconcile.simulator.apiserver.field_set import FieldSet, Path, field, without_below
from reconcile.simulator.apiserver.shape import ListShape, MapShape, Shape
from reconcile.simulator.apiserver.walk import ABSENT, deduce, element_of, same


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Which fields of one object differ from those of another."""

    added: FieldSet
    modified: FieldSet
    removed: FieldSet

    @property
    def changed(self) -> FieldSet:
        return self.added | self.modified

    def without(self, ignored: FieldSet) -> Comparison:
        """What is left when the ignored fields, and all below them, are not looked at."""
        return Comparison(
            added=without_below(self.added, ignored),
            modified=without_below(self.modified, ignored),
            removed=without_below(self.removed, ignored),
        )


def compare(shape: Shape, left: Any, right: Any) -> Comparison:
    """What `right` has more, other or less than `left`. A new map is added, and so is each field in it."""
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
        if old != new:
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
        """One item against one item; doubled items, which only old objects have, are compared as a whole."""
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
