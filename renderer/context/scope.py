"""The mapping that templates look into, and the texts that stand for what is not known yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


class Scope(Mapping[str, Any]):
    """A named, immutable mapping; an unknown key in a template is an error with the name."""

    __slots__ = ("_values", "name")

    def __init__(self, name: str, values: Mapping[str, Any]) -> None:
        self.name = name
        self._values = {key: _scoped(f"{name}.{key}", value) for key, value in values.items()}

    def __getitem__(self, key: str) -> Any:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class NotedScope(Scope):
    """A scope that notes which of its keys were looked at, be they there or not; all of them if it was gone through."""

    __slots__ = ("_read",)

    def __init__(self, name: str, values: Mapping[str, Any], read: set[str]) -> None:
        super().__init__(name, values)
        self._read = read

    def __getitem__(self, key: str) -> Any:
        self._read.add(key)
        return super().__getitem__(key)

    def __iter__(self) -> Iterator[str]:
        self._read.update(self._values)
        return super().__iter__()

    def __len__(self) -> int:
        self._read.update(self._values)
        return super().__len__()


def _scoped(name: str, value: Any) -> Any:
    if isinstance(value, Mapping) and not isinstance(value, Scope):
        return Scope(name, value)
    if isinstance(value, (list, tuple)):
        return tuple(_scoped(f"{name}[{index}]", item) for index, item in enumerate(value))
    return value


RUN_TIME = "<known at run time: "
"""The beginning of each of these texts."""


def run_time_mark(what: str) -> str:
    """The text that stands in a manifest for a value that is known at run time only."""
    return f"{RUN_TIME}{what}>"


SYMBOLIC_NODE = Scope(
    "node",
    {"name": "<node>", "witness": False, "paused": False, "machine": "<machine>", "machinePlan": "<machine-plan>"},
)
"""Stands for any node where a fan-out is described once."""
