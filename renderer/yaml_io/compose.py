"""Composes text into nodes: what is too much or too deep is refused while it is read, since the C code recurses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

MOST_NODES = 6_000_000
"""Of a file, in some 1.8 GB of memory: as many as a file of 64 MiB has that `kubectl` wrote."""
_MOST_REPEATED = 100_000  # an alias bomb is refused long before memory is short
MAX_DEPTH = 100
"""The deepest CRD in use has 40, so code that walks a value may recurse."""
PLAIN = "plain"
"""This very object marks a plain scalar; a tag that a file writes itself is another one."""
_TEXT, _SEQUENCE, _MAPPING = (f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map"))


class Allowance:
    """The number of nodes that may still be read, of one file or of several together, and how many of them again by an
    alias."""

    def __init__(self, nodes: int = MOST_NODES) -> None:
        self.nodes, self.repeated = nodes, _MOST_REPEATED

    def spend(self, nodes: int) -> None:
        """For what is read by other means than this door."""
        self.nodes -= nodes

    @property
    def is_spent(self) -> bool:
        return self.nodes < 0 or self.repeated < 0


class LimitError(Exception):
    """Stops the composing, at a line."""


class _Loader(yaml.CSafeLoader):
    """Marks plain scalars, and leaves to us what they mean. Nodes are counted in the place of PyYAML's path resolvers,
    which nobody sets, and their depth is bounded while they are made, since the C code recurses."""

    def __init__(self, text: str, allowance: Allowance) -> None:
        super().__init__(text)
        self._allowance = allowance
        self._depth = 0

    def resolve(self, kind: type[yaml.Node], value: str | None, implicit: tuple[bool, bool]) -> str:
        if kind is yaml.ScalarNode:
            return PLAIN if implicit[0] else _TEXT
        return _SEQUENCE if kind is yaml.SequenceNode else _MAPPING

    def descend_resolver(self, current_node: yaml.Node | None, current_index: Any) -> None:
        self._depth += 1
        self._allowance.nodes -= 1
        if self._allowance.nodes < 0:
            raise LimitError(current_node, "contains too many nodes", "split it")
        if self._depth > MAX_DEPTH + 1:
            raise LimitError(current_node, f"nested deeper than {MAX_DEPTH} levels", "reduce the nesting")

    def ascend_resolver(self) -> None:
        self._depth -= 1


def composed(text: str, allowance: Allowance) -> Iterator[yaml.Node | None]:
    """The root of each document; None for an empty one."""
    loader = _Loader(text, allowance)
    try:
        while loader.check_node():
            yield loader.get_node()
    finally:
        loader.dispose()
