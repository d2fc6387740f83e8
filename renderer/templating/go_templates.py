"""Translates a template of `install/` to Go's templates, for a chart that people can read and maintain.

Only a small part of Jinja has a counterpart there: values, text joined by `~`, `and`, `or`, `not`, `==`, `>`, `if`,
`for` over a list or over `| dictsort(true)`, and the filters `quote` (`toJson`), `digest`, `replace` and `join`.
Anything else raises `TranslationError`: a chart that says something else than the manifests must not be written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from jinja2 import Environment, nodes

_MARK = re.compile(r"({{.*?}}|{%.*?%}|{#.*?#})", re.DOTALL)
_STATEMENT = re.compile(r"{%\s*(?P<word>\w+)\s*(?P<rest>.*?)\s*%}", re.DOTALL)
_FOR = re.compile(r"(?P<names>\w+(?:\s*,\s*\w+)?)\s+in\s+(?P<of>.+)", re.DOTALL)
_WORD = re.compile(r"[\w.$\"]+|\"[^\"]*\"")
_ENVIRONMENT = Environment(autoescape=True)


class TranslationError(ValueError):
    """Part of a template that has no counterpart in Go's language."""


def in_go(text: str) -> str:
    """The template's text with each of its marks in Go's words; what stands between them stays as it is."""
    writer = _Writer()
    return "".join(writer.part(part) for part in _MARK.split(text))


class _Writer:
    """Goes through one template from top to bottom. In a loop the dot is the item: values are looked up by `$`."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._names: list[str] = []

    def part(self, text: str) -> str:
        if text.startswith("{#"):
            return f"{{{{- /* {text[2:-2].strip()} */}}}}"
        if text.startswith("{{"):
            return f"{{{{ {self._expression(text[2:-2])} }}}}"
        if text.startswith("{%"):
            return f"{{{{- {self._statement(text)} }}}}"
        return text

    def _statement(self, text: str) -> str:
        found = _STATEMENT.fullmatch(text)
        word, rest = (found["word"], found["rest"]) if found else ("", text)
        if word in ("endif", "endfor"):
            if self._open.pop() == "for":
                self._names = self._names[:-2]
            return "end"
        if word == "else":
            return "else"
        if word == "elif":
            return f"else if {self._expression(rest)}"
        if word == "if":
            self._open.append("if")
            return f"if {self._expression(rest)}"
        if word == "for":
            return self._for(rest)
        raise TranslationError(text)

    def _for(self, rest: str) -> str:
        found = _FOR.fullmatch(rest)
        if found is None:
            raise TranslationError(rest)
        names = [name.strip() for name in found["names"].split(",")]
        of = self._expression(found["of"])
        self._open.append("for")
        self._names += ["", *names][-2:]
        words = ", ".join(f"${name}" for name in names)
        return f"range {words} := {of}"

    def _expression(self, text: str) -> str:
        (output,) = _ENVIRONMENT.parse(f"{{{{ {text.strip()} }}}}").find_all(nodes.Output)
        (node,) = output.nodes
        return self._said(node)

    def _said(self, node: nodes.Node | None) -> str:
        match node:
            case nodes.Name():
                return self._name(node)
            case nodes.Getattr():
                return f"{self._said(node.node)}.{node.attr}"
            case nodes.Const():
                return json.dumps(node.value)
            case nodes.Filter():
                return self._filter(node)
            case nodes.Concat():
                return " ".join(["print", *map(self._operand, node.nodes)])
            case nodes.Compare(expr=left, ops=[nodes.Operand(op=operator, expr=right)]) if operator in _COMPARED:
                return _COMPARED[operator].format(self._operand(left), self._operand(right))
            case nodes.Not():
                return f"not {self._operand(node.node)}"
            case nodes.And():
                return f"and {self._operand(node.left)} {self._operand(node.right)}"
            case nodes.Or():
                return f"or {self._operand(node.left)} {self._operand(node.right)}"
        raise TranslationError(f"{type(node).__name__} has no counterpart in Go's templates")

    def _operand(self, node: nodes.Node) -> str:
        """The words for a value where several stand side by side."""
        words = self._said(node)
        return words if _WORD.fullmatch(words) else f"({words})"

    def _name(self, node: nodes.Name) -> str:
        root = "$" if "for" in self._open else ""
        known = {"values": f"{root}.Values", "appVersion": f"{root}.Chart.AppVersion"}
        if node.name in self._names:
            return f"${node.name}"
        if node.name not in known:
            raise TranslationError(node.name)
        return known[node.name]

    def _filter(self, node: nodes.Filter) -> str:
        if node.name not in _FILTERS:
            raise TranslationError(f"| {node.name}")
        arguments = "".join(f" {self._operand(argument)}" for argument in node.args)
        words = _FILTERS[node.name]
        return self._said(node.node) if not words else f"{self._said(node.node)} | {words}{arguments}"


_FILTERS: Mapping[str, str] = {
    "quote": "toJson",
    "digest": "toJson | sha256sum",
    "replace": "replace",
    "join": "join",
    "dictsort": "",  # Go goes through a mapping in the order of its keys
}
"""By Jinja's name; an argument that is piped comes last in Go's functions."""

_COMPARED: Mapping[str, str] = {"gt": "gt (int {}) {}", "eq": "eq {} {}"}
