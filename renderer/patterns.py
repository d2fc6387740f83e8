"""Regular expressions of probes. Python's engine tries every way to match; one that repeats what repeats, or has too
many repeats, has more ways than anybody waits for. So its form and the length of what it is tried on are bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from renderer.errors import quoted

_LONGEST = (10**6, 10_000, 500, 100)
"""Characters of a value, by the number of open repeats of the pattern: some ten million ways at most."""
_OPEN = 10  # `{1,3}` has few ways; from here on a repeat counts as open
_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)


class UnusablePattern(ValueError):
    """`text` is the pattern."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


@lru_cache(maxsize=256)
def compiled(text: str) -> tuple[re.Pattern[str], int]:
    """The pattern, and how long a value may be that it is tried on. Raises `UnusablePattern`."""
    try:
        pattern, repeats = re.compile(text), tuple(_open_repeats(parser.parse(text)))
    except (re.error, OverflowError, RecursionError) as error:
        raise UnusablePattern(f"{quoted(text)} is not a regular expression: {error}", text) from error
    if any(_has_choices(repeat) for repeat in repeats):
        raise UnusablePattern(f"{quoted(text)} repeats what itself repeats or has alternatives", text)
    if len(repeats) >= len(_LONGEST):
        raise UnusablePattern(
            f"{quoted(text)} has {len(repeats)} open repeats; at most {len(_LONGEST) - 1} are allowed", text
        )
    return pattern, _LONGEST[len(repeats)]


def matches(text: str, value: str) -> bool:
    """True if the pattern matches anywhere in the value. Raises `UnusablePattern`."""
    pattern, longest = compiled(text)
    if len(value) > longest:
        raise UnusablePattern(f"{quoted(text)} is not tried on {len(value)} characters; at most {longest} are", text)
    return pattern.search(value) is not None


def _open_repeats(tree: Any) -> Iterator[Any]:
    """The parts that are repeated without a limit, wherever they stand."""
    for operation, argument in tree:
        if operation in _REPEATS and argument[1] >= _OPEN:
            yield argument[2]
        for below in _below(argument):
            yield from _open_repeats(below)


def _has_choices(tree: Any) -> bool:
    for operation, argument in tree:
        if operation is ops.BRANCH or (operation in _REPEATS and argument[0] != argument[1]):
            return True
        if any(map(_has_choices, _below(argument))):
            return True
    return False


def _below(argument: Any) -> Iterator[Any]:
    """The parts of an operation that are patterns themselves."""
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for part in argument:
            yield from _below(part)
