"""Text in, by Go's scalar rules: what `kubectl` would read, but duplicate keys, unknown tags, `.inf` and `.nan` are
refused, and every path knows its line.

The API server reads YAML with sigs.k8s.io/yaml, whose plain scalars follow Go's strconv.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import field, replace
from typing import Any

import yaml

from renderer.errors import Problem, Problems, problem, quoted, shortened
from renderer.frozen import frozen
from renderer.model.path import Path
from renderer.yaml_io.go_scalars import go_scalar

MOST_NODES = 6_000_000
"""Of a file, in some 1.8 GB of memory: as many as a file of 64 MiB has that `kubectl` wrote."""
_MOST_REPEATED = 100_000  # an alias bomb is refused long before memory is short
_MAX_DEPTH = 100  # the deepest CRD of the field has 40; whoever walks a value may recurse
_PLAIN = "plain"  # this very object marks a scalar; a tag that a file writes itself is another one
_TEXT, _SEQUENCE, _MAPPING = (f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map"))
_TAGS = {f"tag:yaml.org,2002:{name}": name for name in ("str", "int", "float", "bool", "null", "map", "seq")}
_SHOWN = 60  # digits of a number
_QUOTE_REMEDY = "put the value in quotes if it is text"


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


class _TooMuch(Exception):
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
            return _PLAIN if implicit[0] else _TEXT
        return _SEQUENCE if kind is yaml.SequenceNode else _MAPPING

    def descend_resolver(self, current_node: yaml.Node | None, current_index: Any) -> None:
        self._depth += 1
        self._allowance.nodes -= 1
        if self._allowance.nodes < 0:
            raise _TooMuch(current_node, "contains too much: more nodes than are read", "split it")
        if self._depth > _MAX_DEPTH + 1:
            raise _TooMuch(current_node, f"nested deeper than {_MAX_DEPTH} levels", "reduce the nesting")

    def ascend_resolver(self) -> None:
        self._depth -= 1


@frozen
class Document:
    """One YAML document: where it stands and what it says.

    `line` is where it starts, from 1. `value` follows Go's scalar rules; `text` is the same tree with every scalar as
    the text that stands in the file (a bare key gives the empty string), for files whose values are text by contract.
    """

    file: str
    line: int
    value: Any
    _node: yaml.Node | None = field(repr=False, compare=False)

    @property
    def text(self) -> Any:
        return None if self._node is None else _Builder(self.file, _plain_text, Allowance()).build_all(self._node)

    def with_value(self, value: Any) -> Document:
        """The same document with another value; its lines are those of the text that was read."""
        return replace(self, value=value)

    def line_of(self, path: Path) -> int:
        """The line of the deepest part of `path` that exists."""
        node, line = self._node, self.line
        for step in path:
            found = _child(node, step)
            if found is None:
                break
            node, line = found
        return line

    def line_with(self, text: str) -> int | None:
        """The first line where this very text stands, as a key or a value; None if it stands nowhere."""
        waiting = [self._node]
        while waiting:
            node = waiting.pop()
            if isinstance(node, yaml.ScalarNode):
                if node.value == text:
                    return int(node.start_mark.line) + 1
            elif node is not None:
                below = [part for entry in node.value for part in (entry if isinstance(entry, tuple) else (entry,))]
                waiting += reversed(below)
        return None


def parse(text: str, file: str, allowance: Allowance | None = None) -> tuple[Document, ...]:
    """Every document of `text` that is not empty. Raises `Problems` that name `file` and the line."""
    allowance = allowance or Allowance()
    try:
        nodes = list(_composed(text, allowance))
    except _TooMuch as error:
        node, message, remedy = error.args
        line = node.start_mark.line + 1 if node else None
        raise problem("InvalidYAML", message, file=file, line=line, remedy=remedy) from error
    except yaml.MarkedYAMLError as error:
        remedy = "check the indentation, tabs, and unclosed quotes or brackets"
        raise problem("InvalidYAML", _message(error), file=file, line=_error_line(error), remedy=remedy) from error
    except yaml.reader.ReaderError as error:
        raise problem(
            "InvalidYAML",
            f"character U+{error.character:04X} is not allowed in YAML",
            file=file,
            line=text.encode().count(b"\n", 0, error.position) + 1,
            remedy="remove the character, or write it as an escape in double quotes",
        ) from error
    except ValueError as error:
        remedy = "save the file as UTF-8"
        raise problem("InvalidYAML", f"cannot be read as YAML: {error}", file=file, remedy=remedy) from error
    documents = (_document(node, file, allowance) for node in nodes)
    return tuple(document for document in documents if document.value is not None)


def _composed(text: str, allowance: Allowance) -> Iterator[yaml.Node | None]:
    loader = _Loader(text, allowance)
    try:
        while loader.check_node():
            yield loader.get_node()
    finally:
        loader.dispose()


def _document(node: yaml.Node | None, file: str, allowance: Allowance) -> Document:
    if node is None:
        return Document(file=file, line=1, value=None, _node=None)
    value = _Builder(file, go_scalar, allowance).build_all(node)
    return Document(file=file, line=node.start_mark.line + 1, value=value, _node=node)


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(step):
                return value, key.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and 0 <= step < len(node.value):
        return node.value[step], node.value[step].start_mark.line + 1
    return None


def _message(error: yaml.MarkedYAMLError) -> str:
    return (
        "; ".join(shortened(str(part)) for part in (error.context, error.problem) if part) or "cannot be read as YAML"
    )


def _error_line(error: yaml.MarkedYAMLError) -> int | None:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark else None


class _Builder:
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
            return self._plain(node) if node.tag is _PLAIN and not node.style else self._build_scalar(node)
        if id(node) in self._built:
            self._allowance.repeated -= 1 + len(node.value)
        self._built.add(id(node))
        if self._allowance.repeated < 0 or id(node) in self._open:
            raise self._refuse(node, "an alias expands too much or contains itself", "write the value instead")
        if len(self._open) + bool(node.value) > _MAX_DEPTH:
            raise self._refuse(node, f"nested deeper than {_MAX_DEPTH} levels", "reduce the nesting")
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
            raise self._refuse(node, "contains a character that cannot be encoded as UTF-8", "remove the character")
        if node.tag is _PLAIN or _TAGS.get(node.tag) == "str":  # a quoted one that is tagged `!`
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
            if key_node.tag is _PLAIN and key_node.value == "<<" and not key_node.style:
                merged = {**self._merge(value_node), **merged}
                continue
            key = key_node.value
            if (
                key_node.tag is not _PLAIN or key_node.style or self._scalar(key) is not key
            ):  # else it is text without further ado
                key = self._key(key_node)
            if key in result:
                raise self._refuse(key_node, f"duplicate key {quoted(key)}", "remove one of them")
            is_plain = value_node.tag is _PLAIN and not value_node.style
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


def _plain_text(text: str) -> str:
    return text
