"""Reads a rendered tree of another branch, to compare with. It may be incomplete."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from renderer.errors import Problems, problem
from renderer.files.decode import text_of
from renderer.files.filesystem import is_folder, read_bytes
from renderer.files.tree_state import INDEX, is_inside
from renderer.model.document_type import RENDERED_PLAN
from renderer.yaml_io import parse

_REMEDY = "name the folder that a render has written, or the one that it was given as --output-dir"


def read_base(folder: Path, plan: str) -> tuple[Mapping[str, Any], dict[str, str]] | None:
    """The index of the plan's tree in this folder, and its files by their paths; None if the folder has no tree of this
    plan. Raises `Problems` for what cannot be read."""
    if not is_folder(folder):
        raise problem("NotFound", "no such folder", file=str(folder), remedy=_REMEDY)
    root = folder if (folder / INDEX).is_file() else folder / plan
    if not (root / INDEX).is_file():
        return None
    index = _index(root / INDEX)
    if index["plan"] != plan:
        return None
    files = {}
    for path in (path for path in index["files"] if is_inside(path)):
        try:
            files[path] = text_of(read_bytes(root / path), path)
        except Problems:  # a file that is gone counts as removed
            continue
    return index, files


def _index(path: Path) -> Mapping[str, Any]:
    documents = parse(text_of(read_bytes(path), str(path)), str(path))
    value: Any = documents[0].value if len(documents) == 1 else None
    found = isinstance(value, Mapping) and value.get("kind") == RENDERED_PLAN.kind
    if not found or not isinstance(value.get("phases"), list) or not isinstance(value.get("files"), list):
        raise problem("DamagedIndex", f"is not a {RENDERED_PLAN.kind}", file=str(path), remedy=_REMEDY)
    known: Mapping[str, Any] = value
    return known
