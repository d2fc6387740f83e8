"""Reads the packaged templates and lays overlay folders over them, file by file.

A file of a later folder takes the place of the file with the same path; a new folder is a new phase. What the files
mean is not known here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from renderer.catalog.template_tree import Template, TemplateTree
from renderer.errors import Problem, Problems
from renderer.files.decode import text_of
from renderer.files.filesystem import is_device, is_folder, link_outside, read_bytes, unreadable
from renderer.resources import packaged

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

_LEFT_OUT = ("__pycache__", "__init__.py")
_LEFT_OUT_ENDINGS = ("~", ".swp", ".bak", ".orig", ".rej", ".pyc")


def read_templates(overlays: Sequence[Path] = ()) -> TemplateTree:
    """The tree by path, sorted; it cannot be changed. Raises `Problems` with everything that cannot be read.

    Hidden files and what editors leave behind are left out. Symbolic links are followed within an overlay, as a mounted
    ConfigMap expects.
    """
    problems: list[Problem] = []
    tree = dict(_packaged_files(packaged("templates")))
    for overlay in overlays:
        tree |= dict(_overlay_files(overlay, problems))
    if problems:
        raise Problems(problems)
    return MappingProxyType(dict(sorted(tree.items())))


def _packaged_files(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Template]]:
    for entry in folder.iterdir():
        path = f"{prefix}{entry.name}"
        if _is_left_out(entry.name):
            continue
        if entry.is_dir():
            yield from _packaged_files(entry, f"{path}/")
        else:
            yield path, Template(text=entry.read_text(encoding="utf-8"), shown=f"templates/{path}", packaged=True)


def _overlay_files(overlay: Path, problems: list[Problem]) -> Iterator[tuple[str, Template]]:
    if is_folder(overlay):
        known = len(problems)
        files = list(_folder_files(overlay, overlay, "", (), problems))
        if not files and len(problems) == known:
            problems.append(_wrong_place("EmptyFolder", "contains no template", overlay))
        yield from files
        return
    try:
        overlay.stat()
    except OSError as error:
        problems.append(unreadable(str(overlay), error))
    else:
        problems.append(_wrong_place("NotAFolder", "is not a folder", overlay))


def _wrong_place(reason: str, message: str, overlay: Path) -> Problem:
    remedy = "pass the folder that contains the phase folders"
    return Problem(reason=reason, message=message, file=str(overlay), remedy=remedy)


def _folder_files(
    overlay: Path, folder: Path, prefix: str, above: tuple[str, ...], problems: list[Problem]
) -> Iterator[tuple[str, Template]]:
    real = os.path.realpath(folder)
    if real in above:
        message, remedy = "a symbolic link leads back to a folder above it", "remove the link"
        problems.append(Problem(reason="LinkLoop", message=message, file=str(folder), remedy=remedy))
        return
    for name in _names(folder, problems):
        path = folder / name
        if (outside := link_outside(path, overlay)) is not None:
            problems.append(outside)
        elif is_folder(path):
            yield from _folder_files(overlay, path, f"{prefix}{name}/", (*above, real), problems)
        elif is_device(path):
            message, remedy = (
                "is a device, a pipe or a socket; a file is expected",
                "remove it, or put a file in its place",
            )
            problems.append(Problem(reason="NotText", message=message, file=str(path), remedy=remedy))
        elif (text := _text(path, problems)) is not None:
            yield f"{prefix}{name}", Template(text=text, shown=str(path), packaged=False)


def _names(folder: Path, problems: list[Problem]) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if not _is_left_out(entry.name))
    except OSError as error:
        problems.append(unreadable(str(folder), error))
        return []


def _text(path: Path, problems: list[Problem]) -> str | None:
    try:
        return text_of(read_bytes(path), str(path))
    except Problems as error:
        problems += error.problems
        return None


def _is_left_out(name: str) -> bool:
    kept_by_editor = name.startswith("#") and name.endswith("#")
    return name.startswith(".") or name in _LEFT_OUT or name.endswith(_LEFT_OUT_ENDINGS) or kept_by_editor
