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


Looked = tuple[tuple[Any, ...], bool]
"""Keys from the outermost name on, and whether all that is there was looked at; else just that it is a scope."""


class NotedScope(Scope):
    """A scope that notes what was looked at in it, be it there or not."""

    __slots__ = ("_inner", "_path", "_read")

    def __init__(self, scope: Scope, read: set[Looked], path: tuple[Any, ...]) -> None:
        self.name = scope.name
        self._values = scope._values
        self._inner: dict[Any, NotedScope] = {}
        self._path = path
        self._read = read

    def __getitem__(self, key: str) -> Any:
        value, path = self._values.get(key), (*self._path, key)
        if not isinstance(value, Scope):
            self._read.add((path, True))
            return self._values[key]
        if key not in self._inner:
            self._read.add((path, False))
            self._inner[key] = NotedScope(value, self._read, path)
        return self._inner[key]

    def __iter__(self) -> Iterator[str]:
        self._read.add((self._path, True))
        return super().__iter__()

    def __len__(self) -> int:
        self._read.add((self._path, True))
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
