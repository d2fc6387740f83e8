"""The template tree as values: what was read from disk, before anybody asks what it means."""

from __future__ import annotations

from collections.abc import Mapping

from renderer.frozen import frozen


@frozen
class Template:
    """One file of the tree. `shown` is the name that errors use; `packaged` ones are proven by the project's tests,
    others are checked each time they are loaded."""

    text: str
    shown: str
    packaged: bool


Tree = Mapping[str, Template]
"""Path below the tree's root, with `/`, to the file."""
