"""The template tree as values: files as they were read, not interpreted."""

from __future__ import annotations

from collections.abc import Mapping

from renderer.frozen import frozen


@frozen
class Template:
    """One file of the tree. `shown` is its name in errors. Packaged files are proven by the project's tests; others are
    checked each time they are loaded."""

    text: str
    shown: str
    packaged: bool


TemplateTree = Mapping[str, Template]
"""Path below the tree's root, with `/`, to the file."""
