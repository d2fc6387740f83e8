"""The state of a plan's output folder: which files are ours, which are not, and what differs from a rendering.

A file is ours if the folder's `index.yaml` lists it. Only reads.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from renderer.errors import Problem, Problems
from renderer.files.decode import text_of
from renderer.files.filesystem import unreadable
from renderer.frozen import frozen
from renderer.model.document_type import RENDERED_CLUSTERS, RENDERED_PLAN
from renderer.yaml_io import Document, parse

INDEX = "index.yaml"
CLUSTERS = "clusters"
"""The folder of the clusters' folders, in the output of many."""
STAGING = ".upgradeplan-staging"
"""Beside the plan's folder, while one is written."""

Files = Mapping[str, str | bytes]
"""Path below the plan's folder, with `/`, to content."""

_LAYOUT = re.compile(rb"^layout: ([a-z]+)$", re.MULTILINE)
_MOVE = "move it, or use another --output-dir"
_LINK = "is a symbolic link, and nothing is written through one"
_RESTORE = "restore the file from version control, or remove the folder"


@frozen
class TreeChanges:
    """The differences between a folder and a rendering: paths below it, sorted. Foreign files are no difference."""

    missing: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    stale: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.missing or self.changed or self.stale)


@dataclass(slots=True)
class TreeState:
    """A folder as it is. `old` has the bytes of each file that is expected or ours; `open` the folders looked at."""

    folder: Path
    owned: set[str] = field(default_factory=set)
    old: dict[str, bytes] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    open: dict[str, bool] = field(default_factory=dict)


def as_bytes(files: Files) -> dict[str, bytes]:
    """Content as it is written. Raises `ValueError` for a path that leads out of the folder."""
    for path in files:
        if not is_inside(path):
            raise ValueError(f"{path!r} is not a path below the plan's folder")
    return {path: content.encode() if isinstance(content, str) else content for path, content in files.items()}


def is_inside(path: object) -> bool:
    """True if this is a plain relative path that goes down only."""
    if not isinstance(path, str) or not path or "\\" in path or "\0" in path:
        return False
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts and str(pure) == path


def look(folder: Path, expected: Mapping[str, bytes]) -> TreeState:
    """The folder as it is."""
    state = TreeState(folder=folder)
    try:
        if obstacle := no_folder(folder):
            state.problems.append(obstacle)
            return state
        state.owned = _indexed(state, expected)
        for path in sorted({*expected, *state.owned}):
            _look_at(state, path)
    except OSError as error:
        state.problems.append(unreadable(str(error.filename or folder), error))
    return state


def changes(state: TreeState, expected: Mapping[str, bytes]) -> TreeChanges:
    """The changes that a write would make, and the files of others."""
    old = state.old
    ours = {*expected, *state.owned}
    return TreeChanges(
        missing=tuple(sorted(path for path in expected if path not in old)),
        changed=tuple(sorted(path for path in expected if path in old and old[path] != expected[path])),
        stale=tuple(sorted(path for path in state.owned if path in old and path not in expected)),
        foreign=tuple(sorted(path for path in files_below(state.folder) if path not in ours)),
    )


def obstacles(state: TreeState, expected: Mapping[str, bytes]) -> Iterator[Problem]:
    """The reasons why the folder cannot be read or may not be written to: files that are not ours stand in the way."""
    yield from state.problems
    if state.problems:
        return
    if not state.owned and INDEX not in state.old and (others := _entries(state.folder)):
        message = f"contains {others[0]} but no {INDEX} of an earlier render"
        yield Problem(reason="ForeignFolder", message=message, file=str(state.folder), remedy=_MOVE)
        return
    for path, content in state.old.items():
        if path in expected and path not in state.owned and path != INDEX and content != expected[path]:
            yield _in_the_way(state.folder / path, "would be overwritten, and is not from an earlier render")


def _in_the_way(path: Path, message: str) -> Problem:
    return Problem(reason="ForeignFile", message=message, file=str(path), remedy=_MOVE)


def no_folder(folder: Path) -> Problem | None:
    """Explains why this cannot be a folder that is written to."""
    if folder.is_symlink():
        return _in_the_way(folder, "is a symbolic link; a folder is expected")
    if (folder.parent / STAGING).is_symlink():
        return _in_the_way(folder.parent / STAGING, _LINK)
    nearest = next((path for path in (folder, *folder.parents) if path.exists()), folder)
    if nearest.is_dir() or not nearest.exists():
        return None
    what = "a file" if nearest.is_file() else "a device, a pipe or a socket"
    return _in_the_way(nearest, f"is {what}; a folder is expected")


def _indexed(state: TreeState, expected: Mapping[str, bytes]) -> set[str]:
    """The files of the earlier render; none if there was none."""
    index = state.folder / INDEX
    if index.is_symlink() or not index.is_file():
        return set()
    data = index.read_bytes()
    if data == expected.get(INDEX):
        return set(expected)
    try:
        return {INDEX, *_listed(_read(data, str(index)), str(index))}
    except Problems as error:
        state.problems += error.problems
        return set()


def _read(data: bytes, file: str) -> tuple[Document, ...]:
    """The file's bytes; None if it cannot be read for any reason; it is written again then."""
    try:
        return parse(text_of(data, file), file)
    except Problems as error:
        raise Problems(replace(problem, remedy=_RESTORE) for problem in error.problems) from error


def _listed(documents: tuple[Document, ...], file: str) -> list[str]:
    body: Any = documents[0].value if len(documents) == 1 else None
    if (
        not isinstance(body, Mapping)
        or body.get("kind") not in (RENDERED_PLAN.kind, RENDERED_CLUSTERS.kind)
        or not isinstance(body.get("files"), list)
    ):
        raise Problems(
            [_in_the_way(Path(file), f"is not a {RENDERED_PLAN.kind}: the folder is not from an earlier render")]
        )
    wrong = [(number, path) for number, path in enumerate(body["files"]) if not is_inside(path)]
    if wrong:
        raise Problems(
            Problem(
                reason="DamagedIndex",
                message=f"{path!r} is not a path below the folder",
                file=file,
                line=documents[0].line_of(("files", number)),
                field=f"files[{number}]",
                remedy=_RESTORE,
            )
            for number, path in wrong
        )
    return list(body["files"])


def _look_at(state: TreeState, path: str) -> None:
    if not _is_open(state, path.rpartition("/")[0]):
        return
    target = state.folder / path
    try:
        mode = target.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISLNK(mode):
        state.problems.append(_in_the_way(target, _LINK))
    elif stat.S_ISDIR(mode):
        state.problems.append(_in_the_way(target, "is a folder; a file is expected"))
    elif not stat.S_ISREG(mode):  # reading it could block indefinitely
        state.problems.append(_in_the_way(target, "is a device, a pipe or a socket; a file is expected"))
    else:
        state.old[path] = target.read_bytes()


def _is_open(state: TreeState, folder: str) -> bool:
    """True if files may stand in this folder: it is one, or nothing yet. Asked once for each."""
    if folder not in state.open:
        above = folder.rpartition("/")[0]
        state.open[folder] = not folder or (_is_open(state, above) and _is_folder_or_nothing(state, folder))
    return state.open[folder]


def _is_folder_or_nothing(state: TreeState, folder: str) -> bool:
    path = state.folder / folder
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        message = _LINK if path.is_symlink() else "is a file; a folder is expected"
        state.problems.append(_in_the_way(path, message))
        return False
    return True


def _entries(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir()) if folder.is_dir() else []


def layout_of(folder: Path) -> str | None:
    """The layout that the folder's index names; None without an index. Not parsed: a large index takes time."""
    index = folder / INDEX
    if index.is_symlink() or not index.is_file():
        return None
    found = _LAYOUT.search(index.read_bytes())
    return found[1].decode() if found else None


def files_below(folder: Path) -> Iterator[str]:
    """Every file below the folder, and every link, as a path."""
    for parent, folders, names in os.walk(folder):
        links = (name for name in folders if (Path(parent) / name).is_symlink())
        yield from ((Path(parent) / name).relative_to(folder).as_posix() for name in (*names, *links))


def texts_below(folder: Path, name: str) -> dict[str, str]:
    """The files with manifests of a folder in the plan's folder, by their paths; those that are no text are left
    out."""
    found: dict[str, str] = {}
    for path in files_below(folder / name) if not (folder / name).is_symlink() else ():
        if path.endswith((".yaml", ".txt")) and not (folder / name / path).is_symlink():
            with suppress(OSError, UnicodeDecodeError):
                found[f"{name}/{path}"] = (folder / name / path).read_text(encoding="utf-8")
    return found


def empty_folders(folder: Path) -> Iterator[str]:
    """Every folder below in which there is nothing."""
    for parent, folders, names in os.walk(folder):
        if not folders and not names and Path(parent) != folder:
            yield Path(parent).relative_to(folder).as_posix()


def cluster_folders(folder: Path) -> tuple[str, ...]:
    """The folders of clusters that the last rendering of many has written, beside this one; none if there was none."""
    try:
        document = parse(text_of((folder / INDEX).read_bytes(), INDEX), INDEX)[0]
        rows = document.value["clusters"] if RENDERED_CLUSTERS.is_type_of(document.value) else ()
        found = (row["folder"] for row in rows)
        return tuple(name for name in found if is_inside(name) and name.startswith(f"{CLUSTERS}/"))
    except (OSError, Problems, LookupError, TypeError):
        return ()
