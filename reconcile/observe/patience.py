"""Waits for answers, and no longer than some seconds: an address that does not answer must not delay the others.

Each asks in a thread of its own, which ends with the process where no answer comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from threading import Thread
from typing import TypeVar

_T = TypeVar("_T")

SECONDS = 1.5
"""The time of somebody who looks at a screen."""


class NoAnswerError(Exception):
    """Nobody has answered in time; the text says how long that was."""


class Patience:
    """So many seconds for all that is asked, from the first question on, by a monotonic clock."""

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self._seconds = seconds
        self._clock = clock
        self._until: float | None = None

    @property
    def spent(self) -> NoAnswerError:
        """The error of what has not answered."""
        return NoAnswerError(f"no answer within {self._seconds:g} s")

    def answer(self, ask: Callable[[], _T]) -> _T:
        """Raises `NoAnswerError`, and what the question raises."""
        found = self.answers({"": ask})
        if not found:
            raise self.spent
        return found[""].result()

    def answers(self, asks: Mapping[str, Callable[[], _T]]) -> dict[str, Future[_T]]:
        """Those that have come in time, by the name of the question."""
        if self._until is None:
            self._until = self._clock() + self._seconds
        asked = {name: _asked(ask) for name, ask in asks.items()}
        done, _ = wait(asked.values(), timeout=max(0.0, self._until - self._clock()))
        return {name: future for name, future in asked.items() if future in done}


def _asked(ask: Callable[[], _T]) -> Future[_T]:
    answer: Future[_T] = Future()

    def run() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=run, daemon=True).start()
    return answer
