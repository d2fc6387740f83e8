"""Problems as values, the one exception that carries many of them, and the exit codes.

Both halves of the product use these words; nothing here knows what is being rendered or applied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from enum import IntEnum

from renderer.frozen import frozen


class ExitCode(IntEnum):
    """The exit statuses of commands."""

    YES = 0
    NO = 1  # the answer is no: changes, blocked, stale, failed upgrade
    BAD_INPUT = 2  # usage or bad input
    CLUSTER = 3  # the cluster refused or is unavailable
    BUG = 4  # ours


MOST_SHOWN = 200
"""Characters of a value in a message."""
_LONG_QUOTE = re.compile(r"""(['"])((?:(?!\1).){200})(?:(?!\1).)+\1""", re.DOTALL)
_LONG_WORD = re.compile(r"(\S{200})\S{20,}")  # longer than a quoted value that is cut, with what stands around it


def quoted(value: object) -> str:
    """A value as a message shows it, in quotes if it is text: on one line, and at most 200 characters of it."""
    if isinstance(value, str):
        return repr(shortened(value))
    return shortened(repr(value))


def shortened(text: str, most: int = MOST_SHOWN) -> str:
    """The beginning of a text that somebody else has written, as a message shows it."""
    return text if len(text) <= most else f"{text[:most]}…"


@frozen
class Problem:
    """One thing that is wrong, where, and how to fix it.

    `reason` is an UpperCamelCase word that is the same in text, JSON, condition and event. `message` starts
    lower-case and says what was found and what is expected. `line` counts from 1. `field` is a dotted path such as
    `spec.version` or `spec.nodes[2].name`. `remedy` is a sentence or the command to run.
    """

    reason: str
    message: str
    file: str | None = None
    line: int | None = None
    field: str | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.file and self.line else self.file
        text = ": ".join(part for part in (place, self.field, self.message) if part)
        return f"{text}\n    remedy: {self.remedy}" if self.remedy else text


_NAMED = 3
"""Problems that stand in one text; the others are counted."""
_LINE = 600
"""Characters of one of them."""


def one_line(found: Problem) -> str:
    """The problem with its place, its field and its remedy, for where there is one line for it."""
    text = " ".join(str(replace(found, remedy=None)).split())
    return shortened(f"{text} (remedy: {' '.join(found.remedy.split())})" if found.remedy else text, _LINE)


def in_a_line(problems: Iterable[Problem]) -> str:
    """The first of these problems, for a condition or an event: a few sentences, however many there are."""
    lines = [one_line(found) for found in dict.fromkeys(problems)]
    more = [f"and {len(lines) - _NAMED} more problems"] if len(lines) > _NAMED else []
    return "; ".join([*lines[:_NAMED], *more])


def _bounded(found: Problem) -> Problem:
    """The problem with only the beginning of a long value in its message."""
    if len(found.message) <= MOST_SHOWN and len(found.field or "") <= MOST_SHOWN:
        return found
    message = _LONG_WORD.sub(r"\1…", _LONG_QUOTE.sub(r"\1\2…\1", found.message))
    return replace(found, message=message, field=found.field and shortened(found.field))


class Problems(Exception):  # noqa: N818, a list and no error of its own
    """All problems of one run. `exit_code` is what a command that ends on them returns; `warnings` are shown too."""

    def __init__(
        self,
        problems: Iterable[Problem],
        exit_code: ExitCode = ExitCode.BAD_INPUT,
        *,
        warnings: Iterable[Problem] = (),
    ) -> None:
        self.problems: tuple[Problem, ...] = tuple(dict.fromkeys(map(_bounded, problems)))
        self.warnings: tuple[Problem, ...] = tuple(warnings)
        self.exit_code = exit_code
        super().__init__("\n".join(str(problem) for problem in self.problems))


def problem(
    reason: str,
    message: str,
    *,
    file: str | None = None,
    line: int | None = None,
    field: str | None = None,
    remedy: str | None = None,
    exit_code: ExitCode = ExitCode.BAD_INPUT,
) -> Problems:
    """A `Problems` that holds one problem, ready to raise."""
    return Problems(
        [Problem(reason=reason, message=message, file=file, line=line, field=field, remedy=remedy)], exit_code
    )
