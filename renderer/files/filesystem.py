"""Reads one file or folder of the file system, and reports why it cannot be read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from renderer.errors import Problem, Problems, problem
from renderer.files.decode import form_of
from renderer.yaml_io import Document

LARGEST = 64 * 2**20


@dataclass(slots=True)
class FilesRead:
    """The documents read so far, and the problems of the rest. `plans` are those that a cluster has, as a support
    bundle shows; none of them is an input."""

    documents: list[Document] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    plans: list[Document] = field(default_factory=list)


_OPEN = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
"""Files that are open already, such as the pipe of the shell's `<(command)`."""


def read_bytes(path: Path) -> bytes:
    """Raises `Problems` if the file cannot be read or is too large. Of an ISO image only the head is read."""
    require_file(path)
    try:
        with path.open("rb") as stream:
            return bounded(stream, str(path))
    except OSError as error:
        raise Problems([unreadable(str(path), error)]) from error


def require_file(path: Path, remedy: str = "pass a file, or - for standard input") -> None:
    """Raises `Problems` for what may never end, or block until somebody writes to it."""
    if is_device(path) and not str(path).startswith(_OPEN):
        message = "is a device, a pipe or a socket; a file is expected"
        raise problem("NotText", message, file=str(path), remedy=remedy)


def bounded(stream: BinaryIO, file: str) -> bytes:
    """All of a stream, or enough to show that it is not text. Raises `Problems` if it is too large."""
    data = stream.read(2**16)
    if form_of(data):
        return data
    data += stream.read(LARGEST + 1 - len(data))
    if len(data) > LARGEST:
        remedy = "split it, or ask kubectl get only for the kinds that are needed"
        raise problem("TooLarge", f"is larger than {LARGEST // 2**20} MiB", file=file, remedy=remedy)
    return data


def unreadable(file: str, error: OSError) -> Problem:
    """A file or folder that the operating system refuses to show."""
    if isinstance(error, FileNotFoundError):
        return Problem(reason="NotFound", message="no such file or folder", file=file, remedy="correct the path")
    message = f"cannot be read: {error.strerror or error}"
    return Problem(reason="Unreadable", message=message, file=file, remedy=f"look at it with: ls -ld {file}")


def link_outside(path: Path, folder: Path) -> Problem | None:
    """A link that is met in a folder may lead to what lies in that folder, as in a mounted ConfigMap, and nowhere else:
    what a user has named is read, and not what a file of somebody else's points to."""
    if not path.is_symlink():
        return None
    root = Path(os.path.realpath(folder))
    if Path(os.path.realpath(path)).is_relative_to(root):
        return None
    message = f"a symbolic link leads out of {folder}"
    remedy = "put the file itself in its place"
    return Problem(reason="LinkOutside", message=message, file=str(path), remedy=remedy)


def is_device(path: Path) -> bool:
    """A pipe, socket or device: reading one that is found in a folder could block indefinitely."""
    try:
        return path.exists() and not path.is_file() and not path.is_dir()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """False also for what cannot be looked at: reading it says why."""
    try:
        return path.is_dir()
    except OSError:
        return False


def bundle_root(folder: Path) -> Path | None:
    """Of an unpacked support bundle, the folder in which its `yamls` stands: this one, or the only one below it."""
    try:
        if not folder.is_dir():
            return None
        if _has_yamls(folder):
            return folder
        below = [entry for entry in folder.iterdir() if entry.is_dir() and not entry.is_symlink()]
        return below[0] if len(below) == 1 and _has_yamls(below[0]) else None
    except OSError:
        return None


def _has_yamls(folder: Path) -> bool:
    return (folder / "yamls" / "cluster").is_dir() or (folder / "yamls" / "namespaced").is_dir()
