"""Structural sharing: equal parts of similar values are kept in memory once, since nodes differ in little but names.

A shared part must never be changed in place, as no object's body is; so what was worked out for it stays right.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import compress, islice
from operator import eq, is_, is_not
from typing import Any, Generic, TypeVar

from renderer.frozen import is_frozen

_NOTHING = object()
_LONGEST_NAME = 253
_Own = dict[tuple[Any, ...], Any]
"""The parts of one value by what they hold: a mapping its texts, an instance of a frozen class these objects."""
_T = TypeVar("_T")
_K = TypeVar("_K")


class SameObject:
    """A key for this very object, so that results for it need not be computed again."""

    __slots__ = ("it",)

    def __init__(self, it: Any) -> None:
        self.it = it

    def __hash__(self) -> int:
        return id(self.it)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SameObject) and self.it is other.it


class ByIdentity(Generic[_T]):
    """Keeps the results computed for the last `limit` objects, for each object and purpose."""

    def __init__(self, limit: int = 4096, before: ByIdentity[_T] | None = None) -> None:
        """Takes from `before` what is asked for again."""
        self._limit = limit
        self._before = before
        self._known: dict[tuple[object, int], tuple[Any, _T]] = {}  # holds the object, so its id stays its own

    def get(self, it: Any, purpose: object = None) -> _T | None:
        known = self._known.get((purpose, id(it)))
        if known is not None:
            return known[1]
        if self._before is None or (found := self._before.get(it, purpose)) is None:
            return None
        return self.put(it, found, purpose)

    def put(self, it: Any, found: _T, purpose: object = None) -> _T:
        """Returns what was found."""
        if len(self._known) >= self._limit:  # several at once: the first one of a dict is found slowly after deletions
            for key in tuple(islice(self._known, max(1, self._limit // 8))):
                del self._known[key]
        self._known[purpose, id(it)] = it, found
        return found

    def renewed(self) -> ByIdentity[_T]:
        """The same without what is not asked for again, which is forgotten the next time."""
        self._before = None
        return ByIdentity(self._limit, before=self)


def changed(now: Mapping[_K, Any], then: Mapping[_K, Any]) -> Iterator[_K]:
    """The keys of which the two do not have the same; quick where most values are the very same objects."""
    if now is then:
        return
    if len(now) == len(then) and all(map(eq, now, then)):
        for key in compress(now, map(is_not, now.values(), then.values())):
            if now[key] != then[key]:
                yield key
        return
    for key, value in now.items():
        if (before := then.get(key, _NOTHING)) is not value and before != value:
            yield key
    if now.keys() != then.keys():
        yield from then.keys() - now.keys()


def shared(value: Any, like: Any) -> Any:
    """`value`, plain YAML or JSON or of frozen classes, with each part that equals the part of `like` at the same place
    taken from there. Parts of it that equal each other are one, where they are frozen or hold texts alone; a short text
    is the same one wherever it stands."""
    return _shared(value, like, {})


def _shared(value: Any, like: Any, own: _Own) -> Any:
    if value is like:
        return value
    if isinstance(value, dict):
        return _mapping(value, like if isinstance(like, dict) else {}, own)
    if isinstance(value, list):
        return _list(value, like if isinstance(like, list) else [], own)
    if type(value) is tuple:
        return _tuple(value, like if type(like) is tuple else (), own)
    if is_frozen(value):
        return _frozen(value, like, own)
    if type(value) is str:
        return like if type(like) is str and value == like else _one(value)
    alike = type(value) is type(like) is not float and value == like  # 0.0 equals -0.0
    return like if alike else value


def same_shape(one: Any, other: Any) -> bool:
    """True if both have the same keys, and values of the same types; quick where they share much."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same_shape(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same_shape, one, other))
    return True


def _one(text: str) -> str:
    """A node's name stands in a hundred places of what is made for it."""
    return sys.intern(text) if len(text) <= _LONGEST_NAME else text


def _mapping(value: dict[str, Any], like: dict[str, Any], own: _Own) -> dict[str, Any]:
    """Texts, which most values are, are compared here and not in a call each."""
    made: dict[str, Any] = {}
    same, all_texts = len(value) == len(like), True
    for key, item in value.items():
        other = like.get(key, _NOTHING)
        if type(item) is str:
            found = other if type(other) is str and item == other else _one(item)
        else:
            found, all_texts = _shared(item, other, own), False
        same = same and found is other
        made[sys.intern(key)] = found
    if same and list(made) == list(like):
        return like
    return own.setdefault(tuple(made.items()), made) if all_texts else made


def _tuple(value: tuple[Any, ...], like: tuple[Any, ...], own: _Own) -> tuple[Any, ...]:
    made = tuple(_list(list(value), known := list(like), own))
    return like if len(made) == len(known) and all(map(is_, made, known)) else made


def _frozen(value: Any, like: Any, own: _Own) -> Any:
    others = like if type(value) is type(like) else None
    names = type(value).__slots__
    found = [_shared(getattr(value, name), getattr(others, name, _NOTHING), own) for name in names]
    if others is not None and all(item is getattr(others, name) for name, item in zip(names, found, strict=True)):
        return like
    key = type(value), *map(id, found)
    if key not in own:
        own[key] = type(value)(**dict(zip(names, found, strict=True)))
    return own[key]


def _list(value: list[Any], like: list[Any], own: _Own) -> list[Any]:
    padded = like + [_NOTHING] * (len(value) - len(like))
    made = [_shared(item, other, own) for item, other in zip(value, padded, strict=False)]
    same = len(made) == len(like) and all(one is other for one, other in zip(made, like, strict=True))
    return like if same else made
