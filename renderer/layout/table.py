"""The table of layouts: a row and a module of the same name for each.

Adding a layout is adding both. The table loads no layout: `--help` and the completion of a shell read it.
"""

from __future__ import annotations

from collections.abc import Mapping

LAYOUTS: Mapping[str, str] = {
    "plain": "a folder for each phase",
    "kustomize": "the same, with a kustomization.yaml in each",
}
"""Name to what `--help` says of it; the first one is the default."""

DEFAULT = next(iter(LAYOUTS))


def layout_help() -> str:
    """The table as a sentence."""
    rows = ", ".join(f"{name} ({text})" for name, text in LAYOUTS.items())
    return f"Layout of the files: {rows}. Default: that of the folder if it has one, otherwise {DEFAULT}."
