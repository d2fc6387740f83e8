"""Remembers what a decision about a node has looked at, and what it was answered: it holds while that is the same."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress
from operator import is_not
from typing import Any

from reconcile.probes.look import Answer, Group, Look, Need, ReadFailure, Reading, get_all
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
        self._objects: dict[Ref, Any] = {}
        self._groups: dict[Need, Any] = {}
        self._askers: dict[Need, set[str]] = {}

    def add(self, node: str, seen: Iterable[tuple[Need, Any]]) -> None:
        for need, answer in seen:
            if isinstance(need, Ref):
                self._objects.setdefault(need, answer)
            else:
                self._groups.setdefault(need, answer)
            self._askers.setdefault(need, set()).add(node)

    def forget(self, node: str, seen: Iterable[tuple[Need, Any]]) -> None:
        """The node asks for this no more; nobody is asked what no node asks for."""
        for need, _ in seen:
            self._askers[need].discard(node)
            if not self._askers[need]:
                del self._askers[need]
                self._objects.pop(need, None) if isinstance(need, Ref) else self._groups.pop(need, None)

    def answered_otherwise(self, look: Look) -> set[str]:
        """The nodes that are given another answer now."""
        found, then = get_all(look, self._objects), self._objects
        changed = compress(zip(then.items(), found, strict=True), map(is_not, found, then.values()))
        others: list[Need] = [ref for (ref, before), now in changed if not _is_same(now, before)]
        others += [need for need, before in self._groups.items() if not is_answered(look, need, before)]
        return {node for need in others for node in self._askers[need]}

    def clear(self) -> None:
        self._objects.clear()
        self._groups.clear()
        self._askers.clear()


def is_answered(look: Look, need: Need, then: Any) -> bool:
    """True if the answer is what it was then. A narrower group is made again each time, of the same bodies."""
    found = look.get(need) if isinstance(need, Ref) else look.list(need) if isinstance(need, Group) else None
    return _is_same(found, then)


def _is_same(found: Any, then: Any) -> bool:
    return found is then or (isinstance(found, (tuple, ReadFailure)) and bool(found == then))
