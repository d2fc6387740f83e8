"""Remembers what a decision about a node has looked at, and what it was answered: it holds while that is the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconcile.probes.look import Answer, Group, Look, Need, ReadFailure, Reading
from renderer.model.ref import Body, Ref


class Remembering:
    """A `Look` that remembers what it was asked for and what it answered. `timeless`: a reading is another each minute,
    and messages about one depend on the time."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self.seen: dict[Need, Any] = {}
        self.timeless = True

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        found = self.seen[ref] = self._look.get(ref)
        return found

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        found = self.seen[group] = self._look.list(group)
        return found

    def reading(self, reading: Reading, name: str) -> Answer:
        self.timeless = False
        return self._look.reading(reading, name)


class NodeAnswers:
    """The answers that many nodes were given, each once, and which nodes have asked for it."""

    def __init__(self) -> None:
        self._answers: dict[Need, Any] = {}
        self._askers: dict[Need, set[str]] = {}

    def add(self, node: str, seen: Iterable[tuple[Need, Any]]) -> None:
        for need, answer in seen:
            self._answers.setdefault(need, answer)
            self._askers.setdefault(need, set()).add(node)

    def forget(self, node: str, seen: Iterable[tuple[Need, Any]]) -> None:
        """The node asks for this no more; nobody is asked what no node asks for."""
        for need, _ in seen:
            self._askers[need].discard(node)
            if not self._askers[need]:
                del self._askers[need], self._answers[need]

    def answered_otherwise(self, look: Look) -> set[str]:
        """The nodes that are given another answer now."""
        others = [need for need, then in self._answers.items() if not is_answered(look, need, then)]
        return {node for need in others for node in self._askers[need]}

    def clear(self) -> None:
        self._answers.clear()
        self._askers.clear()


def is_answered(look: Look, need: Need, then: Any) -> bool:
    """True if the answer is what it was then. A narrower group is made again each time, of the same bodies."""
    found = look.get(need) if isinstance(need, Ref) else look.list(need) if isinstance(need, Group) else None
    return found is then or (isinstance(found, (tuple, ReadFailure)) and bool(found == then))
