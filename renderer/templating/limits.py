"""Limits how much one template may do. Steps are counted, not seconds, so that a template ends at the same place in
every run.

What is about to be made is paid for before it is made: a text of gigabytes never comes to be.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from jinja2 import Undefined
from jinja2.runtime import Context

STEPS = 200_000
"""Of one template: less than a second of work. The largest packaged one takes 800."""
ALL_STEPS = 50 * STEPS
"""Of all templates and expressions of one rendering. An upgrade of 1,000 nodes takes a quarter of them."""
LONGEST = 4 * 2**20
"""Characters of a text. No API server takes an object of more than 3 MiB."""
CHARACTERS = 64
"""Of a text are one step."""
_BITS = 1024  # of a whole number; no field of an object has more than 64


class RenderingError(Exception):
    """A template called `fail`, printed what it must not, or did too much."""


class Budget:
    """The steps that are left."""

    __slots__ = ("left", "whole")

    def __init__(self, steps: int) -> None:
        self.left = self.whole = steps

    def spend(self, steps: int) -> None:
        """Raises `RenderingError` where there are not so many left."""
        if steps > self.left:
            self.left = 0
            raise RenderingError(
                f"is stopped after {self.whole:,} steps, the limit of a template; shorten its loops, or what it repeats"
            )
        self.left -= steps

    def spend_text(self, length: int) -> None:
        """For a text that is about to be made."""
        if length > LONGEST:
            raise RenderingError(f"makes a text of {_number(length)} characters; at most {LONGEST:,} are allowed")
        self.spend(length // CHARACTERS)

    def spend_bits(self, bits: int) -> None:
        """For a whole number that is about to be made."""
        if bits > _BITS:
            raise RenderingError(f"makes a number of {_number(bits)} bits; at most {_BITS:,} are allowed")

    def weighed(self, value: Any) -> Any:
        """The value, for one that looks at all of it: what is made while it is looked at is counted then."""
        if isinstance(value, str):
            self.spend(len(value) // CHARACTERS)
        elif hasattr(type(value), "__next__"):
            return self._counted(value)
        elif isinstance(value, Collection) and not isinstance(value, (Undefined, Context)):
            self.spend(len(value))
        return value

    def _counted(self, values: Iterator[Any]) -> Iterator[Any]:
        for value in values:
            self.spend(1)
            yield value


def _number(number: int) -> str:
    """No digits of what has millions of them."""
    return f"{number:,}" if number < 10**15 else "more than 10^15"
