"""Text in, by Go's scalar rules: what `kubectl` would read, but duplicate keys, unknown tags, `.inf` and `.nan` are
refused, and every path knows its line.

The API server reads YAML with sigs.k8s.io/yaml, whose plain scalars follow Go's strconv.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Any

import yaml

from renderer.errors import problem, shortened
from renderer.frozen import frozen
from renderer.model.path import Path
from renderer.yaml_io.compose import Allowance, LimitError, composed
from renderer.yaml_io.go_scalars import go_scalar
from renderer.yaml_io.node_values import Builder


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
        return None if self._node is None else Builder(self.file, _plain_text, Allowance()).build_all(self._node)

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
    return tuple(each_document(text, file, allowance))


def each_document(text: str, file: str, allowance: Allowance | None = None) -> Iterator[Document]:
    """The same one after the other, for text of many documents of which none has to be kept."""
    allowance = allowance or Allowance()
    try:
        for node in composed(text, allowance):
            document = _document(node, file, allowance)
            if document.value is not None:
                yield document
    except LimitError as error:
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


def _document(node: yaml.Node | None, file: str, allowance: Allowance) -> Document:
    if node is None:
        return Document(file=file, line=1, value=None, _node=None)
    value = Builder(file, go_scalar, allowance).build_all(node)
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


def _plain_text(text: str) -> str:
    return text
