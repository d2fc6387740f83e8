"""Strict decoding of built-in kinds: fields that are not declared, and values that a Go field could not hold. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.cluster.errors import StatusCause
from reconcile.simulator.apiserver.shape import Schema
from renderer.model.sharing import ByIdentity

Path = tuple[str | int, ...]

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_KNOWN_DEPTH = 2
"""So far down it is remembered of the very same value that nothing is wrong with it: a write leaves most as it is."""
_SCALARS = (str, int, float)
_ANYTHING = (dict, list, str, bool, int, float)


@dataclass(slots=True)
class _Node:
    """A schema as the walk needs it. `fields` is None where any field may stand, `other` where no other may."""

    types: tuple[type, ...]
    fields: Mapping[str, Schema] | None
    other: Schema | None
    items: Schema | None


class Strict:
    """The definitions, each worked out once."""

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._nodes: dict[int, _Node] = {}
        self._fine = ByIdentity[bool]()

    def refused(self, definition: str, body: Any, at: Path = ()) -> Iterator[StatusCause]:
        """All causes. That of a wrong type has no field, as the server's message has none."""
        for path, message in self._walk(self._definitions[definition], body, at):
            yield (
                StatusCause(field=_text(path), message=message)
                if message == _UNKNOWN
                else StatusCause(field="", message=message)
            )

    def _walk(self, schema: Schema, value: Any, path: Path) -> Iterator[tuple[Path, str]]:
        if value is None:
            return
        node = self._nodes.get(id(schema)) or self._node(schema)
        kind = type(value)
        if kind not in node.types:
            yield path, f"cannot unmarshal {kind.__name__} into {_text(path)}"
        elif kind is dict and node.fields is not None:
            yield from self._fields(node, node.fields, value, path)
        elif kind is list and node.items is not None:
            for index, item in enumerate(value):
                yield from self._walk(node.items, item, (*path, index))

    def _fields(
        self, node: _Node, fields: Mapping[str, Schema], value: Mapping[str, Any], path: Path
    ) -> Iterator[tuple[Path, str]]:
        for name, item in value.items():
            below = fields.get(name, node.other)
            if below is None:
                yield (*path, name), _UNKNOWN
            elif len(path) >= _KNOWN_DEPTH or type(item) not in (dict, list):
                yield from self._walk(below, item, (*path, name))
            elif not self._fine.get(item, id(below)):
                causes = tuple(self._walk(below, item, (*path, name)))
                if not causes:
                    self._fine.put(item, found=True, purpose=id(below))
                yield from causes

    def _node(self, schema: Schema) -> _Node:
        """Kept by the schema's identity: the definitions live as long as this does."""
        name = str(schema.get("$ref", "")).rpartition("/")[2]
        node = self._made(self._definitions[name] if name else schema)
        self._nodes[id(schema)] = node
        return node

    def _made(self, schema: Schema) -> _Node:
        additional = schema.get("additionalProperties")
        other = additional if isinstance(additional, Mapping) else None
        fields: Mapping[str, Schema] | None = schema.get("properties")
        if fields is None and other is not None:
            fields = {}
        return _Node(types=_types(schema), fields=fields, other=other, items=schema.get("items"))


_UNKNOWN = "unknown field"


def _types(schema: Schema) -> tuple[type, ...]:
    found: Any = schema.get("type")
    if found is None:
        return _SCALARS if schema.get("oneOf") else _ANYTHING
    return _TYPES[found if isinstance(found, str) else found[0]]


def _text(path: Path) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.lstrip(".")
