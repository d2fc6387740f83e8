"""Paths into a manifest or object, as people write them: `status.conditions[0].type`, `metadata.labels["a/b"]`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

Path = tuple[str | int, ...]

ABSENT: Any = type(
    "Absent",
    (),
    {"__repr__": lambda self: "absent", "__bool__": lambda self: False, "__reduce__": lambda self: "ABSENT"},
)()
"""Result of `look_up` for a path that does not exist; distinct from null and from empty. A copy of it is itself."""

_STEP = re.compile(r"""\.?([A-Za-z_$][A-Za-z0-9_$-]*)|\[(\d+)\]|\[(["'])(.*?)\3\]""")


class PathError(ValueError):
    """`text` is the whole path, as it was written."""

    def __init__(self, message: str, text: str) -> None:
        super().__init__(message)
        self.text = text


@lru_cache(maxsize=4096)
def parse_path(text: str) -> Path:
    """Raises `PathError`, which says where the path becomes invalid."""
    steps: list[str | int] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if not match:
            raise PathError(f"path {text!r} is invalid from {text[position:]!r} on", text)
        word, index, _, key = match.groups()
        steps.append(word if word is not None else int(index) if index is not None else key)
        position = match.end()
    if not steps:
        raise PathError("path is empty", text)
    return tuple(steps)


@lru_cache(maxsize=4096)
def path_name(path: Path) -> str:
    """The inverse of `parse_path`."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        elif re.fullmatch(r"[A-Za-z_$][A-Za-z0-9_$-]*", step):
            text += f".{step}" if text else step
        else:
            text += f'["{step}"]'
    return text


def starts_with(path: Path, start: Path) -> bool:
    """True if `path` is `start` or lies below it."""
    return path[: len(start)] == start


def look_up(value: Any, path: Path) -> Any:
    """The value at `path`, or `ABSENT`."""
    for step in path:
        if type(value) is dict and type(step) is str:  # nearly always, and this runs millions of times
            value = value.get(step, ABSENT)
            if value is ABSENT:
                return ABSENT
            continue
        if not _has(value, step):
            return ABSENT
        value = value[step]
    return value


def _has(value: Any, step: str | int) -> bool:
    if isinstance(step, str):
        return isinstance(value, (dict, Mapping)) and step in value
    return isinstance(value, (list, tuple)) and step < len(value)


def walk(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every scalar of a tree with its path, in order."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from walk(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from walk(item, (*path, index))
    else:
        yield path, value
