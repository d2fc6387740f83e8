"""Reads a Harvester support bundle, zipped or unpacked, as the cluster's objects.

Layout (rancher/support-bundle-kit): `yamls/cluster/...` and `yamls/namespaced/<namespace>/...`, below them a group and
version in one of several spellings, and a list of objects in a file named after the kind's plural. Only the files of
kinds that are needed are opened, whatever else a bundle holds; nothing is ever unpacked to disk.
"""

from __future__ import annotations

import os
import stat
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from renderer.errors import Problem, Problems, problem, quoted, shortened
from renderer.files.decode import documents_of, text_of
from renderer.files.filesystem import LARGEST, FilesRead, bundle_root, link_outside, unreadable
from renderer.frozen import frozen
from renderer.resources import packaged
from renderer.source_document import PLAN_KIND
from renderer.yaml_io import Allowance, Document, parse

if TYPE_CHECKING:
    from renderer.catalog.kinds import KindRow

YAMLS = "yamls"
MOST_FILES = 200_000
MOST_BYTES = 512 * 2**20
"""Of all files that are opened, unpacked."""
MOST_NODES = 8_000_000
"""Of all files that are opened."""

Kind = tuple[str, str]
"""Group and kind."""


@cache
def needed_kinds() -> Mapping[Kind, KindRow]:
    """The kinds table: all that a phase or a check can look at. Anything else would only cost time, as would events, of
    which there are more than of all others together."""
    from renderer.catalog.kinds import rows_from  # only who opens a bundle needs the table

    files = (entry for entry in packaged("templates").joinpath("_kinds").iterdir() if entry.name.endswith(".yaml"))
    rows = (row for file in files for row in rows_from(parse(file.read_text(encoding="utf-8"), file.name)[0].value))
    return {(row.kind.group, row.kind.kind): row for row in rows if row.kind.kind != "Event"}


@cache
def _file_names() -> frozenset[str]:
    return frozenset(
        f"{row.kind.plural}{ending}" for row in needed_kinds().values() for ending in (".yaml", ".yml", ".json")
    )


_AGAIN = "create the bundle again, or unpack it and pass the folder"


@frozen
class _Member:
    """One file of a bundle: `name` is its path as the bundle has it."""

    name: str
    open: Callable[[], BinaryIO]


def read_bundle(path: Path) -> FilesRead:
    """The documents of kinds that are needed, in the order of their paths, and everything that is wrong."""
    try:
        if root := bundle_root(path):
            return _read(str(root), _in_folder(root), "/")
        with _opened(path) as archive:
            return _read(str(path), _in_zip(archive, str(path)), ":/")
    except OSError as error:
        return FilesRead(problems=[unreadable(str(path), error)])
    except Problems as error:
        return FilesRead(problems=list(error.problems))


def _opened(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except OSError:
        raise
    except UnicodeDecodeError as error:
        message = f"contains a file whose name is not UTF-8: {quoted(error.object)}"
        raise Problems([_wrong("InvalidBundle", message, str(path))]) from error
    except Exception as error:  # a damaged archive ends in any error
        raise Problems([_wrong("InvalidBundle", f"cannot be read as a zip archive: {error}", str(path))]) from error


def _read(bundle: str, members: Iterable[_Member], joint: str) -> FilesRead:
    reading = FilesRead()
    opened, allowance = 0, Allowance(MOST_NODES)
    for member in sorted(members, key=lambda member: member.name):
        file = f"{bundle}{joint}{member.name}"
        try:
            data = _content(member, file)
            opened += len(data)
            if opened > MOST_BYTES:
                raise _too_large(f"the files to read are larger than {MOST_BYTES // 2**20} MiB", bundle)
            _keep(_documents(data, file, allowance), reading)
        except Problems as error:
            reading.problems += error.problems
        if opened > MOST_BYTES or allowance.is_spent:
            break
    if not reading.documents and not reading.plans and not reading.problems:
        message = f"is not a support bundle: no objects below {YAMLS}"
        reading.problems.append(_wrong("InvalidBundle", message, bundle))
    return reading


def _keep(documents: Iterable[Document], reading: FilesRead) -> None:
    """The plans of a cluster are kept apart: they are not meant to be rendered."""
    for document in documents:
        (reading.plans if _kind_in(document.value) == PLAN_KIND else reading.documents).append(document)


def _content(member: _Member, file: str) -> bytes:
    """Never more than the limit is unpacked, whatever size the archive says."""
    try:
        with member.open() as stream:
            data = stream.read(LARGEST + 1)
    except (OSError, RuntimeError, zipfile.BadZipFile, EOFError) as error:
        raise problem("Unreadable", f"cannot be read: {error}", file=file, remedy=_AGAIN) from error
    except Exception as error:  # a damaged archive ends in any error that a decompressor can have
        raise problem("InvalidBundle", f"cannot be unpacked: {error}", file=file, remedy=_AGAIN) from error
    if len(data) > LARGEST:
        raise _too_large(f"is larger than {LARGEST // 2**20} MiB", file)
    return data


def _documents(data: bytes, file: str, allowance: Allowance) -> Iterator[Document]:
    text = text_of(data, file)
    if text.strip():
        documents = (_typed(document) for document in documents_of(text, file, allowance))
        yield from (document for document in documents if _is_needed(document.value))


def _typed(document: Document) -> Document:
    """An empty list says by its file of which kind there is none."""
    value = document.value
    if not isinstance(value, dict) or value.get("kind") != "List" or value.get("items"):
        return document
    path = PurePosixPath(document.file)
    named = [row.kind for row in needed_kinds().values() if row.kind.plural == path.stem]
    kind = next((kind for kind in named if kind.group and kind.group in document.file), None)
    kind = kind or next((kind for kind in named if not kind.group), None)
    if kind is None:
        return document
    return document.with_value({"apiVersion": kind.api_version, "kind": f"{kind.kind}List", "items": []})


def _is_needed(value: Any) -> bool:
    """By the first item of a list: a file of a bundle holds one kind. Other documents are recognized elsewhere."""
    if not isinstance(value, dict):
        return value is not None
    group = str(_first(value).get("apiVersion") or value.get("apiVersion") or "").rpartition("/")[0]
    return (group, _kind_in(value)) in needed_kinds()


def _kind_in(value: Any) -> str:
    return (
        str(_first(value).get("kind") or value.get("kind", "")).removesuffix("List") if isinstance(value, dict) else ""
    )


def _first(value: dict[str, Any]) -> dict[str, Any]:
    items = value.get("items")
    return items[0] if isinstance(items, list) and items and isinstance(items[0], dict) else {}


# ------------------------------------------------------------------------------------------------------ where it is


def _in_folder(root: Path) -> Iterator[_Member]:
    """A linked folder is not looked into: what it shows from inside the bundle stands there as well."""
    places = [root / YAMLS]
    for folder, folders, names in os.walk(root / YAMLS, followlinks=False):
        places += (Path(folder, name) for name in (*folders, *(name for name in names if name in _file_names())))
    if problems := [outside for path in places if (outside := link_outside(path, root))]:
        raise Problems(problems)
    files = {os.path.realpath(path): path for path in sorted(places, reverse=True) if path.is_file()}
    for path in files.values():
        yield _Member(name=path.relative_to(root).as_posix(), open=_opener(path))


def _opener(path: Path) -> Callable[[], BinaryIO]:
    return lambda: path.open("rb")


def _in_zip(archive: zipfile.ZipFile, bundle: str) -> Iterator[_Member]:
    entries = archive.infolist()
    if len(entries) > MOST_FILES:
        raise _too_large(f"contains {len(entries)} files; at most {MOST_FILES} are read", bundle)
    problems = list(_bad_names(entries, bundle))
    if problems:
        raise Problems(problems)
    for entry in entries:
        if _is_read(entry):
            yield _Member(name=entry.filename, open=_unpacker(archive, entry))


def _unpacker(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Callable[[], Any]:
    return lambda: archive.open(entry)


def _bad_names(entries: Iterable[zipfile.ZipInfo], bundle: str) -> Iterator[Problem]:
    """Names that lead out of the archive, or that stand there twice: no tool that makes bundles writes them."""
    seen: set[str] = set()
    for entry in entries:
        name = entry.filename
        parts = name.replace("\\", "/").split("/")
        if "\\" in entry.orig_filename or ".." in parts or name.startswith("/") or ":" in parts[0]:
            message = f"contains {quoted(entry.orig_filename)}, a path outside the archive"
            yield _wrong("InvalidBundle", message, bundle)
        elif name in seen:
            yield _wrong("InvalidBundle", f"contains {quoted(name)} twice", bundle)
        elif entry.flag_bits & 1 and _is_read(entry):
            yield _wrong("InvalidBundle", f"{shortened(name)} is encrypted", bundle)
        elif stat.S_ISLNK(entry.external_attr >> 16) and _is_read(entry):
            yield _wrong("InvalidBundle", f"{shortened(name)} is a symbolic link; a file is expected", bundle)
        seen.add(name)


def _is_read(entry: zipfile.ZipInfo) -> bool:
    parts = PurePosixPath(entry.filename).parts
    return bool(parts) and parts[-1] in _file_names() and YAMLS in parts[:2]


def _too_large(message: str, file: str) -> Problems:
    return problem("TooLarge", message, file=file, remedy="pass the files that are needed one by one")


def _wrong(reason: str, message: str, file: str) -> Problem:
    return Problem(reason=reason, message=message, file=file, remedy=_AGAIN)
