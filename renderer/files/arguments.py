"""Reads arguments as `kubectl apply -f` does: files, the files of a folder, standard input.

Everything that cannot be read becomes a problem, and reading goes on, so that one run shows all of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from renderer.errors import Problem, Problems, problem
from renderer.files.decode import ZIP, documents_of, form_of, text_of
from renderer.files.fetch import is_address
from renderer.files.filesystem import (
    FilesRead,
    bounded,
    bundle_root,
    is_device,
    is_folder,
    link_outside,
    read_bytes,
    unreadable,
)

STDIN = "<stdin>"
EXTENSIONS = (".yaml", ".yml", ".json")


def read_documents(arguments: Iterable[str], stdin: BinaryIO | None = None) -> FilesRead:
    """All documents of the arguments, in their order; a folder's files by name. A file is read once."""
    reading = FilesRead()
    seen: set[str] = set()
    for argument in arguments:
        for name in _expanded(argument, reading.problems):
            if (real := name if name == STDIN else os.path.realpath(name)) not in seen:
                seen.add(real)
                _read_one(name, stdin, reading)
    return reading


def _expanded(argument: str, problems: list[Problem]) -> Iterator[str]:
    if argument == "-":
        yield STDIN
    elif is_address(argument):
        remedy = "fetch it and name the file; only --release takes an address"
        message = "an address is not read here"
        problems.append(Problem(reason="NotFound", message=message, file=argument, remedy=remedy))
    elif is_folder(Path(argument)) and not bundle_root(Path(argument)):
        yield from _members(Path(argument), problems)
    else:
        yield argument


def _members(folder: Path, problems: list[Problem]) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
    except OSError as error:
        problems.append(unreadable(str(folder), error))
        return
    folders = {name for name in names if is_folder(folder / name)}
    expected = [
        name for name in names if name.endswith(EXTENSIONS) and name not in folders and not is_device(folder / name)
    ]
    if not expected:
        remedy = "name a folder below it; folders are not searched further" if folders else "name another folder"
        message = f"contains no {', '.join(EXTENSIONS)} file"
        problems.append(Problem(reason="EmptyFolder", message=message, file=str(folder), remedy=remedy))
    outside = {name: found for name in expected if (found := link_outside(folder / name, folder))}
    problems += outside.values()
    yield from (str(folder / name) for name in expected if name not in outside)


def _read_one(name: str, stdin: BinaryIO | None, reading: FilesRead) -> None:
    if name != STDIN and bundle_root(Path(name)):
        _add_bundle(Path(name), reading)
        return
    try:
        data = _from_stdin(stdin) if name == STDIN else read_bytes(Path(name))
        if name != STDIN and form_of(data) is ZIP:
            _add_bundle(Path(name), reading)
            return
        reading.documents += documents_of(text_of(data, name), name)
    except Problems as error:
        reading.problems += error.problems


def _add_bundle(path: Path, reading: FilesRead) -> None:
    from renderer.files.bundle import read_bundle  # dear, and seldom needed

    bundle = read_bundle(path)
    reading.documents += bundle.documents
    reading.plans += bundle.plans
    reading.problems += bundle.problems


def _from_stdin(stdin: BinaryIO | None) -> bytes:
    if stdin is None:
        raise problem("Unreadable", "standard input is closed", file=STDIN, remedy="pass a file")
    try:
        return bounded(stdin, STDIN)
    except OSError as error:
        raise Problems([unreadable(STDIN, error)]) from error
