"""Decides whether what a regular expression repeats can match a text in one way only.

Python's engine tries every way. A repeat with two ways through the same text has four through twice that text, eight
through three times; with one way it costs what the text costs. So of each repeat without a limit the positions of its
characters are found, and which can follow which (Glushkov's automaton): those that can follow one position must have
no character in common, and the same one must not follow in two ways, as it does in `(a+)+`. Sets of characters are
exact for ASCII; beyond it every set counts as having all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from re import _constants as ops  # type: ignore[attr-defined]
from typing import Any

from renderer.frozen import frozen

OPEN = 10
"""From here on a limit counts as none: `{1,3}` has few ways."""
REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)

_MOST = 500
"""Positions of a repeat."""
_BEYOND = 1 << 128
"""The bit of all that is not ASCII; the others are the characters."""
_ASCII = _BEYOND - 1
_ALL = _ASCII | _BEYOND
_CATEGORIES: Mapping[Any, Callable[[str], bool]] = {
    ops.CATEGORY_DIGIT: str.isdigit,
    ops.CATEGORY_SPACE: str.isspace,
    ops.CATEGORY_WORD: lambda character: character.isalnum() or character == "_",
}
_OPPOSITES = {
    ops.CATEGORY_NOT_DIGIT: ops.CATEGORY_DIGIT,
    ops.CATEGORY_NOT_SPACE: ops.CATEGORY_SPACE,
    ops.CATEGORY_NOT_WORD: ops.CATEGORY_WORD,
}


class _SeveralWaysError(Exception):
    """The same text can be matched in more than one way, or that is unknown."""


@frozen
class _Fragment:
    """The positions that a part can begin and end with. `empty`: it can match nothing, in one way."""

    empty: bool
    first: tuple[int, ...] = ()
    last: tuple[int, ...] = ()


_NOTHING = _Fragment(empty=True)


def has_one_way(operation: Any, argument: Any, *, ignore_case: bool) -> bool:
    """Of an operation of `REPEATS` and its arguments. `ignore_case` if any part of the pattern does."""
    paths = _Paths(ignore_case=ignore_case)
    try:
        part = paths.part(operation, argument)
        paths.require_differing(part.first)
        for following in paths.following:
            paths.require_differing(following)
    except _SeveralWaysError:
        return False
    return True


class _Paths:
    """Positions as they are found: the characters of each, and the positions that follow it."""

    def __init__(self, *, ignore_case: bool) -> None:
        self.ignore_case = ignore_case
        self.characters: list[int] = []
        self.following: list[list[int]] = []

    def require_differing(self, positions: Any) -> None:
        seen = 0
        for position in positions:
            if seen & self.characters[position]:
                raise _SeveralWaysError
            seen |= self.characters[position]

    def part(self, operation: Any, argument: Any) -> _Fragment:
        if operation in (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN):
            return self._position(_set(operation, argument, self.ignore_case))
        if operation is ops.AT:
            return _NOTHING
        if operation is ops.SUBPATTERN:
            return self._sequence(argument[3])
        if operation is ops.ATOMIC_GROUP:
            return self._sequence(argument)
        if operation is ops.BRANCH:
            return self._branch(argument[1])
        if operation in REPEATS:
            return self._repeat(*argument)
        raise _SeveralWaysError  # it looks ahead or back

    def _position(self, characters: int) -> _Fragment:
        if len(self.characters) == _MOST:
            raise _SeveralWaysError
        self.characters.append(characters)
        self.following.append([])
        here = (len(self.characters) - 1,)
        return _Fragment(empty=False, first=here, last=here)

    def _sequence(self, tree: Any) -> _Fragment:
        done = _NOTHING
        for item in tree:
            done = self._joined(done, self.part(*item))
        return done

    def _joined(self, left: _Fragment, right: _Fragment) -> _Fragment:
        for position in left.last:
            self.following[position] += right.first
        return _Fragment(
            empty=left.empty and right.empty,
            first=left.first + (right.first if left.empty else ()),
            last=right.last + (left.last if right.empty else ()),
        )

    def _branch(self, trees: Any) -> _Fragment:
        parts = [self._sequence(tree) for tree in trees]
        if sum(part.empty for part in parts) > 1:
            raise _SeveralWaysError
        return _Fragment(
            empty=any(part.empty for part in parts),
            first=tuple(position for part in parts for position in part.first),
            last=tuple(position for part in parts for position in part.last),
        )

    def _repeat(self, least: int, most: int, tree: Any) -> _Fragment:
        if most >= OPEN:
            part = self._not_empty(tree)
            for position in part.last:
                self.following[position] += part.first
            return _Fragment(empty=not least, first=part.first, last=part.last)
        optional = _NOTHING
        for _ in range(most - least):
            inner = self._joined(self._not_empty(tree), optional)
            optional = _Fragment(empty=True, first=inner.first, last=inner.last)
        done = _NOTHING
        for _ in range(least):
            done = self._joined(done, self._sequence(tree))
        return self._joined(done, optional)

    def _not_empty(self, tree: Any) -> _Fragment:
        """Refuses what can match nothing where it can be left out: these are two ways."""
        part = self._sequence(tree)
        if part.empty:
            raise _SeveralWaysError
        return part


def _set(operation: Any, argument: Any, ignore_case: bool) -> int:
    """A negated set keeps its case: without regard to case it has fewer characters."""
    if operation is ops.ANY:
        return _ALL
    items = argument if operation is ops.IN else [(ops.LITERAL, argument)]
    found = 0
    for item, value in items:
        found |= _characters(item, value)
    if operation is ops.NOT_LITERAL or items[0][0] is ops.NEGATE:
        return _ASCII & ~found | _BEYOND
    return _both_cases(found) if ignore_case else found


def _characters(item: Any, value: Any) -> int:
    if item is ops.LITERAL:
        return _span(value, value)
    if item is ops.RANGE:
        return _span(*value)
    if item is ops.CATEGORY:
        if value in _OPPOSITES:
            return _ASCII & ~_characters(item, _OPPOSITES[value]) | _BEYOND
        return sum(1 << code for code in range(128) if _CATEGORIES[value](chr(code))) | _BEYOND
    return 0  # NEGATE


def _span(low: int, high: int) -> int:
    return sum(1 << code for code in range(low, min(high, 127) + 1)) | (_BEYOND if high > 127 else 0)


def _both_cases(found: int) -> int:
    """Some letters have a third form beyond ASCII."""
    letters = [chr(code) for code in range(128) if found >> code & 1 and chr(code).isalpha()]
    codes = {ord(form) for letter in letters for form in (letter.lower(), letter.upper())}
    return found | sum(1 << code for code in codes) | (_BEYOND if letters else 0)
