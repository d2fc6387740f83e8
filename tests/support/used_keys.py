"""Finds every annotation, label and finalizer that the code and the templates name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from renderer.model.plan_api import PREFIX
from support.source_code import nodes

_DOMAIN = r"[a-z0-9-]+(?:\.[a-z0-9-]+)+"
_KEY = re.compile(rf"(?<![/.a-z0-9-]){_DOMAIN}/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_API_VERSION = re.compile(r".*/v\d+((alpha|beta)\d+)?")
_CALL = re.compile(r"""annotation\(\s*['"]([\w.-]+)['"]""")
_OVERRIDE = re.compile(r"override: \{annotation: ([\w-]+)")
_VARIABLE = re.compile(rf"({_DOMAIN}/){{{{")
_COMMENT = re.compile(r"^\s*#[^\n]*$|\{#.*?#\}", re.MULTILINE | re.DOTALL)
_NAMES_OF_FILES = (".yaml", ".yml", ".json", ".img", ".sock")


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """A key and a place that names it. A key that ends in `/` goes on with a name that is rendered."""

    key: str
    place: str


def in_code(modules: Mapping[str, ast.Module]) -> Iterator[Used]:
    """`modules` by file name. A key that is put together from our prefix, as in `f"{PREFIX}name"`, counts too."""
    for file, tree in modules.items():
        for node in nodes(tree):
            for key in _keys(node):
                yield Used(key=key, place=f"{file}:{getattr(node, 'lineno', 0)}")


def in_templates(texts: Mapping[str, str]) -> Iterator[Used]:
    """`texts` by file name; comments do not count."""
    for file, text in texts.items():
        bare = _COMMENT.sub("", text)
        keys = {key for key in _KEY.findall(bare) if _is_key(key)}
        keys |= {f"{PREFIX}{name}" for name in (*_CALL.findall(bare), *_OVERRIDE.findall(bare))}
        keys |= set(_VARIABLE.findall(bare))
        yield from (Used(key=key, place=file) for key in sorted(keys))


def _keys(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Constant(value=str(text)) if _KEY.fullmatch(text) and _is_key(text):
            yield text
        case ast.JoinedStr(values=[ast.FormattedValue(value=value), ast.Constant(value=str(name))]) if _is_prefix(
            value
        ):
            yield f"{PREFIX}{name}"
        case ast.BinOp(left=left, right=ast.Constant(value=str(name))) if _is_prefix(left):
            yield f"{PREFIX}{name}"


def _is_prefix(node: ast.expr) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return name.endswith("PREFIX")


def _is_key(text: str) -> bool:
    return not _API_VERSION.fullmatch(text) and not text.endswith(_NAMES_OF_FILES)
