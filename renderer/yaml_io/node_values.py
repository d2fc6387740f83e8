"""Turns nodes into values by Go's scalar rules, and refuses by line what `kubectl` or JSON could not take."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import yaml

from renderer.errors import Problem, Problems, quoted, shortened
from renderer.yaml_io.compose import MAX_DEPTH, PLAIN, Allowance
from renderer.yaml_io.go_scalars import go_scalar

_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "map", "seq")}
_SHOWN = 60  # digits of a number
_QUOTE_REMEDY = "put the value in quotes if it is text"


class Builder:
    """Turns a node tree into values; it counts, so that aliases cannot blow it up."""

    def __init__(self, file: str, scalar: Callable[[str], Any], allowance: Allowance) -> None:
        self._file = file
        self._scalar = scalar
        self._allowance = allowance
        self._open: set[int] = set()
        self._built: set[int] = set()
        self._root: yaml.Node | None = None

    def build_all(self, root: yaml.Node) -> Any:
        """The value of a whole document."""
        self._root = root
        return self.build(root)

    def build(self, node: yaml.Node) -> Any:
        if isinstance(node, yaml.ScalarNode):
            return self._plain(node) if node.tag is PLAIN and not node.style else self._build_scalar(node)
        if id(node) in self._built:
            self._allowance.repeated -= 1 + len(node.value)
        self._built.add(id(node))
        if self._allowance.repeated < 0 or id(node) in self._open:
            raise self._refuse(node, "an alias expands too much or contains itself", "write the value instead")
        if len(self._open) + bool(node.value) > MAX_DEPTH:
            raise self._refuse(node, f"nested deeper than {MAX_DEPTH} levels", "reduce the nesting")
        self._open.add(id(node))
        try:
            if _TAGS.get(node.tag) != ("map" if node.__class__ is yaml.MappingNode else "seq"):
                raise self._refuse(node, f"the tag {self._quoted(node, node.tag)} is not supported", "remove the tag")
            return self._mapping(node) if node.__class__ is yaml.MappingNode else [self.build(n) for n in node.value]
        finally:
            self._open.discard(id(node))

    def _plain(self, node: yaml.Node) -> Any:
        """It has no escapes, and so no characters but those that stand in the file."""
        value = self._scalar(node.value)
        return self._finite(node, value) if value.__class__ is float else value

    def _build_scalar(self, node: yaml.ScalarNode) -> Any:
        text: str = node.value
        if "\0" in text or (not text.isascii() and re.search(_SURROGATE, text)):
            raise self._refuse(node, "contains NUL or half of a surrogate pair", "remove the character")
        if node.tag is PLAIN or _TAGS.get(node.tag) == "str":  # a quoted one that is tagged `!`
            return text
        if node.tag not in _TAGS:
            raise self._refuse(node, f"the tag {self._quoted(node, node.tag)} is not supported", "remove the tag")
        value = self._finite(node, go_scalar(text))
        if not isinstance(value, _TYPES[_TAGS[node.tag]]):
            raise self._refuse(node, f"{self._quoted(node, text)} does not fit the tag {node.tag!r}", "remove the tag")
        return value

    def _finite(self, node: yaml.Node, value: Any) -> Any:
        if isinstance(value, float) and not math.isfinite(value):
            shown = "the value" if self._may_be_secret(node) else shortened(node.value, _SHOWN)
            raise self._refuse(node, f"{shown} is not a number in JSON", _QUOTE_REMEDY)
        return value

    def _mapping(self, node: yaml.MappingNode) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag is PLAIN and key_node.value == "<<" and not key_node.style:
                merged = {**self._merge(value_node), **merged}
                continue
            key = key_node.value
            if (
                key_node.tag is not PLAIN or key_node.style or self._scalar(key) is not key
            ):  # else it is text without further ado
                key = self._key(key_node)
            if key in result:
                raise self._refuse(key_node, f"duplicate key {quoted(key)}", "remove one of them")
            is_plain = value_node.tag is PLAIN and not value_node.style
            result[key] = self._plain(value_node) if is_plain else self.build(value_node)
        return {**merged, **result} if merged else result

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._refuse(node, "a key must be a scalar", "use text as the key")
        value = self.build(node)
        if isinstance(value, str):
            return value
        if isinstance(value, bool):
            return "true" if value else "false"
        if value is None or isinstance(value, float):  # Go refuses the one and rewrites the other: 1.10 as 1.1
            found = f"the number {shortened(node.value, _SHOWN)}" if node.value and value is not None else "null"
            raise self._refuse(node, f"a key is {found}, not a string", "put the key in quotes")
        return str(value)

    def _merge(self, node: yaml.Node) -> dict[str, Any]:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for source in reversed(sources):
            value = self.build(source)
            if not isinstance(value, dict):
                raise self._refuse(node, "'<<' requires a mapping or a list of mappings", "merge a mapping")
            merged.update(value)
        return merged

    def _quoted(self, node: yaml.Node, text: str) -> str:
        return "of a value" if self._may_be_secret(node) else quoted(text)

    def _may_be_secret(self, node: yaml.Node) -> bool:
        """True if the node stands in a Secret, or below a name whose value is not to be shown."""
        above = _above(self._root, node) if self._root else None
        return above is None or any(map(_is_delicate, above))

    def _refuse(self, node: yaml.Node, message: str, remedy: str) -> Problems:
        line = node.start_mark.line + 1
        return Problems([Problem(reason="InvalidYAML", message=message, file=self._file, line=line, remedy=remedy)])


_TYPES: dict[str, type | tuple[type, ...]] = {
    "int": int,
    "float": (int, float),
    "bool": bool,
    "null": type(None),
    "map": dict,
    "seq": list,
}
_SURROGATE = "[\ud800-\udfff]"  # like the others that are seldom met, compiled when it is first needed


def _above(root: yaml.Node, searched: yaml.Node) -> list[tuple[yaml.Node, str]] | None:
    """The mappings above a node, each with the key below which it stands; None if it is not there."""
    waiting: list[tuple[yaml.Node, list[tuple[yaml.Node, str]]]] = [(root, [])]
    seen: set[int] = set()
    while waiting:
        node, above = waiting.pop()
        if node is searched:
            return above
        if isinstance(node, yaml.ScalarNode) or id(node) in seen:
            continue
        seen.add(id(node))
        for item in node.value:
            key, value = item if isinstance(item, tuple) else (None, item)
            waiting.append((value, [*above, (node, str(key.value))] if key else above))
            if key:
                waiting.append((key, above))
    return None


def _is_delicate(place: tuple[yaml.Node, str]) -> bool:
    mapping, name = place
    is_secret = any((key.value, value.value) == ("kind", "Secret") for key, value in mapping.value)
    return is_secret or re.search(_DELICATE, name, re.IGNORECASE) is not None


_DELICATE = "auth|cred|key|pass|pw|secret|token"
"""In names. The list of what is secret is itself read with this module, and cannot be asked."""
