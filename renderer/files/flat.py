"""Writes a folder of a few files whose names are known beforehand, so that each file is written completely or not at
all.

A folder with any other content is refused: files of others are never replaced or removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from renderer.errors import Problem, Problems, problem
from renderer.files.operations import Disk, FileOperations

_STAGED = ".upgradeplan-new-"


def write_flat(
    folder: Path,
    files: Mapping[str, str],
    known: Iterable[str],
    operations: FileOperations | None = None,
    *,
    folders: Iterable[str] = (),
) -> None:
    """`known` are all names that an earlier write may have left; those that are not in `files` are removed. `folders`
    may be there as well, and are left alone.

    All files are staged before the first is replaced. Raises `Problems`.
    """
    disk = operations or Disk()
    names = {*known, *files}
    try:
        _refuse_foreign(folder, names, frozenset(folders))
        for missing in reversed([place for place in (folder, *folder.parents) if not place.exists()]):
            disk.make_folder(missing)
        for name, text in files.items():
            disk.write(folder / f"{_STAGED}{name}", text.encode())
        for name in sorted(names - set(files)):
            if (folder / name).exists():
                disk.remove(folder / name)
        for name in files:
            disk.rename(folder / f"{_STAGED}{name}", folder / name)
    except OSError as error:
        message = f"cannot be written: {error.strerror or error}"
        remedy = "make room or correct its permissions, and run the command again"
        raise problem("CannotWrite", message, file=error.filename or str(folder), remedy=remedy) from error


def _refuse_foreign(folder: Path, names: set[str], folders: frozenset[str]) -> None:
    if folder.is_symlink() or not folder.exists():
        if folder.is_symlink():
            raise Problems([_in_the_way(folder, "is a symbolic link, and nothing is written through one")])
        return
    there = sorted(path for path in folder.iterdir() if not (path.name in folders and _is_own_folder(path)))
    found = [path for path in there if path.name.removeprefix(_STAGED) not in names]
    links = [path for path in there if path.is_symlink() or path.is_dir()]
    foreign = [_in_the_way(path, "was not written by an earlier run") for path in dict.fromkeys((*found, *links))]
    if foreign:
        raise Problems(foreign)


def _is_own_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _in_the_way(path: Path, message: str) -> Problem:
    remedy = "move it away, or choose another --output-dir"
    return Problem(reason="ForeignFile", message=message, file=str(path), remedy=remedy)
