"""JSON merge patch (RFC 7386) and JSON patch (RFC 6902). Pure: the body that goes in is not changed.

As in the API server, a `replace` of a name that is not there sets it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reconcile.simulator.apiserver.walk import same


class PatchError(ValueError):
    """An operation that cannot be done, or a test that does not hold."""


def merge_patched(target: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        return patch
    out = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            out.pop(name, None)
        else:
            out[name] = merge_patched(out.get(name), value)
    return out


def json_patched(target: Any, operations: Sequence[Mapping[str, Any]]) -> Any:
    """Raises PatchError; then nothing of the patch is applied."""
    for operation in operations:
        target = _applied(target, operation)
    return target


def _applied(target: Any, operation: Mapping[str, Any]) -> Any:
    name, path = operation["op"], _steps(operation["path"])
    if name == "test":
        if not same(_at(target, path), operation.get("value")):
            raise PatchError(f"testing value {operation['path']} failed")
        return target
    if name == "remove":
        return _edited(target, path, _removed)
    if name == "replace":
        return _edited(target, path, _setter(operation.get("value"), replaces=True))
    if name == "add":
        return _edited(target, path, _setter(operation.get("value"), replaces=False))
    source = _steps(operation.get("from", ""))
    value = _at(target, source)
    if name == "move":
        target = _edited(target, source, _removed)
    elif name != "copy":
        raise PatchError(f"unexpected operation {name!r}")
    return _edited(target, path, _setter(value, replaces=False))


def _steps(pointer: str) -> tuple[str, ...]:
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])


def _at(value: Any, path: Sequence[str]) -> Any:
    for step in path:
        try:
            value = value[int(step)] if isinstance(value, list) else value[step]
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise PatchError(f"path /{'/'.join(path)} does not exist") from error
    return value


def _edited(value: Any, path: Sequence[str], edit: Callable[[Any, str], Any]) -> Any:
    """A copy along the path, with the edit made in its last container."""
    if not path:
        return edit({"": value}, "")[""]
    if len(path) == 1:
        return edit(value, path[0])
    below = _edited(_at(value, path[:1]), path[1:], edit)
    if isinstance(value, list):
        return [below if index == int(path[0]) else item for index, item in enumerate(value)]
    return {**value, path[0]: below}


def _removed(container: Any, step: str) -> Any:
    _at(container, (step,))
    if isinstance(container, list):
        return [item for index, item in enumerate(container) if index != int(step)]
    return {name: item for name, item in container.items() if name != step}


def _setter(value: Any, *, replaces: bool) -> Callable[[Any, str], Any]:
    def edit(container: Any, step: str) -> Any:
        if isinstance(container, list):
            return _placed(container, step, value, replaces=replaces)
        if not isinstance(container, Mapping):
            raise PatchError(f"{step!r} cannot be set in a scalar")
        return {**container, step: value}

    return edit


def _placed(items: list[Any], step: str, value: Any, *, replaces: bool) -> list[Any]:
    index = len(items) if step == "-" else int(step)
    if index + replaces > len(items):
        raise PatchError(f"index {step} is out of bounds")
    return [*items[:index], value, *items[index + replaces :]]
