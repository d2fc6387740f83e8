"""An overlay of templates as values of an installation: a ConfigMap holds its files, and the manager mounts it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from renderer.catalog.places import INSTALL
from renderer.catalog.template_tree import Template, TemplateTree
from renderer.errors import Problem, Problems

MOST = 1024 * 1024
"""Bytes of a ConfigMap's data that the API server takes."""

_KEY = re.compile(r"[A-Za-z0-9_.-]{1,253}")


def overlay_values(tree: TemplateTree) -> dict[str, Any]:
    """Values with the files of the tree that are not packaged; what is for the installation itself is left out.

    Raises `Problems` for files that no ConfigMap can hold.
    """
    own = {path: item for path, item in tree.items() if not item.packaged and not path.startswith(f"{INSTALL}/")}
    if problems := list(_problems(own)):
        raise Problems(problems)
    return {"templates": {path: item.text for path, item in own.items()}} if own else {}


def key_of(path: str) -> str:
    """The key of a file in the ConfigMap: keys hold no `/`."""
    return path.replace("/", "__")


def _problems(own: TemplateTree) -> Iterator[Problem]:
    keys: dict[str, str] = {}
    for path, item in own.items():
        if not _KEY.fullmatch(key_of(path)):
            message = "its path cannot be a key of a ConfigMap, which has letters, digits, `-`, `_` and `.`"
            yield _problem("InvalidName", message, item, "rename it")
        if (other := keys.setdefault(key_of(path), path)) != path:
            yield _problem("InvalidName", f"has the same key in a ConfigMap as {own[other].shown}", item, "rename one")
    size = sum(len(key_of(path).encode()) + len(item.text.encode()) for path, item in own.items())
    if size > MOST:
        largest = max(own.values(), key=lambda item: len(item.text))
        message = f"the templates have {size:,} bytes; a ConfigMap holds at most {MOST:,}"
        remedy = "make them smaller, or build them into an image of your own"
        yield _problem("TemplatesTooLarge", message, largest, remedy)


def _problem(reason: str, message: str, item: Template, remedy: str) -> Problem:
    return Problem(reason=reason, message=message, file=item.shown, remedy=remedy)
