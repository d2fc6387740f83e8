"""A `Look` that notes what could not be read, so that a check that is not answered says how to give it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from reconcile.probes.look import NOT_READ, Answer, Group, Look, ReadFailure, Reading
from renderer.model.ref import Body, Ref

_T = TypeVar("_T")


class NotingFailures:
    """`failures` are those of all that was asked, each once."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._failures: dict[ReadFailure, None] = {}

    @property
    def failures(self) -> tuple[ReadFailure, ...]:
        return tuple(self._failures)

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        return self._noted(self._look.get(ref))

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        return self._noted(self._look.list(group))

    def reading(self, reading: Reading, name: str) -> Answer:
        answer = self._look.reading(reading, name)
        if isinstance(answer, ReadFailure):
            self._noted(_named(answer, reading, name))
        return answer

    def _noted(self, answer: _T) -> _T:
        if isinstance(answer, ReadFailure):
            self._failures[answer] = None
        return answer


def _named(failure: ReadFailure, reading: Reading, name: str) -> ReadFailure:
    """Names what was asked: what a server or a network says does not. Files lack a kind of reading whole."""
    if failure is NOT_READ or failure.out_of_reach or name in failure.why:
        return failure
    return replace(failure, why=f"{reading.name} reading of {name}: {failure.why}")
