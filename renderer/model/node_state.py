"""The states of a node in an upgrade, and the rule that a node only moves forward through their ordinals.

A table of data (`templates/_node-states/*.yaml`). Which phase sets which state is not known here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from renderer.frozen import frozen


@frozen
class NodeState:
    """A row: a node never moves from one ordinal to a smaller one."""

    name: str
    ordinal: int
    description: str
    out_of_service: bool = False
    upgraded: bool = False


class NodeStates:
    """Look-ups over the table."""

    def __init__(self, rows: Iterable[NodeState] = ()) -> None:
        self._rows = {row.name: row for row in rows}

    def __iter__(self) -> Iterator[NodeState]:
        return iter(self._rows.values())

    def __contains__(self, state: str) -> bool:
        return state in self._rows

    def is_ahead(self, state: str | None, other: str) -> bool:
        """True if a node in `state` is past `other`. Without a state, or in an unknown one, it is past nothing."""
        return self._ordinal(state or "") > self._ordinal(other)

    def is_out_of_service(self, state: str) -> bool:
        """True if the workload of a node in `state` may be away."""
        return state in self._rows and self._rows[state].out_of_service

    def is_upgraded(self, state: str) -> bool:
        """True if a node in `state` has the new release."""
        return state in self._rows and self._rows[state].upgraded

    def _ordinal(self, state: str) -> int:
        row = self._rows.get(state)
        return -1 if row is None else row.ordinal
