"""Regular expressions of probes. Python's engine tries every way to match; what is repeated must therefore have one way
(`pattern_paths`), and the number of repeats and the length of what they are tried on are bounded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from renderer.errors import quoted
from renderer.pattern_paths import OPEN, REPEATS, has_one_way

_LONGEST = (10**6, 10_000, 500, 100)
"""Characters of a value, by the number of open repeats of the pattern: some ten million ways at most. Of a pattern that
has other ways as well, so many fewer that it takes no longer."""
_MOST_WAYS = 100
"""Ways through all that is not in an open repeat, by alternatives and repeats with a limit."""


class PatternError(ValueError):
    """`text` is the pattern."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


@lru_cache(maxsize=256)
def compiled(text: str) -> tuple[re.Pattern[str], int]:
    """The pattern, and how long a value may be that it is tried on. Raises `PatternError`."""
    try:
        pattern, tree = re.compile(text), parser.parse(text)
        repeats = tuple(_open_repeats(tree))
    except (re.error, OverflowError, RecursionError) as error:
        raise PatternError(f"{quoted(text)} is not a regular expression: {error}", text) from error
    ignore_case = _ignores_case(tree, pattern.flags)
    if not all(has_one_way(*repeat, ignore_case=ignore_case) for repeat in repeats):
        raise PatternError(f"{quoted(text)} repeats what can match the same text in several ways", text)
    if len(repeats) >= len(_LONGEST):
        raise PatternError(
            f"{quoted(text)} has {len(repeats)} open repeats; at most {len(_LONGEST) - 1} are allowed", text
        )
    if (ways := _ways(tree, ignore_case)) > _MOST_WAYS:
        raise PatternError(f"{quoted(text)} can match in more than {_MOST_WAYS} ways", text)
    return pattern, int(_LONGEST[len(repeats)] / ways ** (1 / (len(repeats) + 1)))


def matches(text: str, value: str) -> bool:
    """True if the pattern matches anywhere in the value. Raises `PatternError`."""
    pattern, longest = compiled(text)
    if len(value) > longest:
        raise PatternError(f"{quoted(text)} is not tried on {len(value)} characters; at most {longest} are", text)
    return pattern.search(value) is not None


def _open_repeats(tree: Any) -> Iterator[Any]:
    """The operations that repeat without a limit and are in no other such one, each with its arguments, as often as it
    is repeated with a limit."""
    for operation, argument in tree:
        if operation in REPEATS and argument[1] >= OPEN:
            yield operation, argument
            continue
        times = argument[1] if operation in REPEATS else 1
        for below in _below(argument):
            yield from [*_open_repeats(below)] * times


def _ways(tree: Any, ignore_case: bool) -> int:
    ways = 1
    for operation, argument in tree:
        if operation in REPEATS:
            ways *= _ways_of_repeat(operation, argument, ignore_case)
        elif operation is ops.BRANCH:
            ways *= sum(_ways(below, ignore_case) for below in argument[1])
        else:
            for below in _below(argument):
                ways *= _ways(below, ignore_case)
        ways = min(ways, _MOST_WAYS + 1)
    return ways


def _ways_of_repeat(operation: Any, argument: Any, ignore_case: bool) -> int:
    """Counts where it may end, and if there is not one way to get there, all ways."""
    least, most, below = argument
    if most >= OPEN:
        return 1
    if has_one_way(operation, argument, ignore_case=ignore_case):
        return int(most - least + 1)
    ways = _ways(below, ignore_case)
    return sum(ways**times for times in range(least, most + 1))


def _ignores_case(tree: Any, flags: int) -> bool:
    """True if any part of the pattern does."""
    local = (argument[1] for operation, argument in tree if operation is ops.SUBPATTERN)
    below = (below for _, argument in tree for below in _below(argument))
    return any(bool(each & re.IGNORECASE) for each in (flags, *local)) or any(_ignores_case(each, 0) for each in below)


def _below(argument: Any) -> Iterator[Any]:
    """The parts of an operation that are patterns themselves."""
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for part in argument:
            yield from _below(part)
