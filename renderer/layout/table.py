"""The table of layouts: a row and a module of the same name for each.

Adding a layout is adding both. The table loads no layout: `--help` and the completion of a shell read it.
"""

from __future__ import annotations

from collections.abc import Mapping

from renderer.frozen import frozen


@frozen
class Layout:
    """`help` is what `--help` says of it. `pulled` layouts are made for agents that pull them from Git: what is in them
    is known to all who can read the repository, so they hold no credentials unless those are allowed."""

    help: str
    pulled: bool = True


LAYOUTS: Mapping[str, Layout] = {
    "plain": Layout(help="a folder for each phase", pulled=False),
    "kustomize": Layout(help="the same, with a kustomization.yaml in each"),
}
"""Name to layout; the first one is the default."""

DEFAULT = next(iter(LAYOUTS))


def layout_help() -> str:
    """The table as a sentence."""
    rows = ", ".join(f"{name} ({layout.help})" for name, layout in LAYOUTS.items())
    return f"Layout of the files: {rows}. Default: that of the folder if it has one, otherwise {DEFAULT}."
