"""Finds the packaged `templates/` and `schemas/`, beside this package in a wheel, above it in a source tree, and the
commit that the package was built from.

Used by readers of packaged files only; nothing is read, and no other folder is searched.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


def packaged(name: str) -> Traversable:
    """The folder `templates` or `schemas`, as a path, or as part of the zip file that the package was loaded from.

    Raises `FileNotFoundError` where the installation is not whole.
    """
    package = Path(__file__).parent
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    inside = _in_package(name)
    if not inside.is_dir():
        raise FileNotFoundError(f"{name} is not installed with the package renderer")
    return inside


def commit() -> str | None:
    """The commit that a wheel was built from (hatch_build.py writes it); None in a source tree."""
    record = _in_package("commit.txt")
    return record.read_text(encoding="utf-8").strip() if record.is_file() else None


def _in_package(name: str) -> Traversable:
    from importlib.resources import files  # the import is dear, and only a zip file and `version` need it

    return files("renderer") / name
