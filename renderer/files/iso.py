"""Reads the release out of a Harvester ISO image, and the two image lists that show which images are no longer used.

Layout: `spec` of the upgrade repository, which serves the same tree. The door to pycdlib, which is imported only here
and only when needed. An image without Rock Ridge or Joliet has short names: `HARVESTE.YAM` is found as well.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from renderer.errors import Problem, Problems, problem
from renderer.files.decode import ISO, documents_of, text_of
from renderer.files.filesystem import is_device, unreadable
from renderer.model.document_type import FACTS
from renderer.source_document import without_lines
from renderer.yaml_io import Document

RELEASE = "harvester-release.yaml"
_LISTS = ("bundle", "harvester", "images-lists-archive")
_LIST = "image_list_all.txt"
_LARGEST = 4 * 2**20
_REMEDY = "fetch the image again and compare its checksum, or name harvester-release.yaml itself with --release"


def is_iso(path: Path) -> bool:
    """By content; the name does not count. False also for what cannot be read, or only once."""
    if is_device(path):
        return False
    try:
        with path.open("rb") as stream:
            stream.seek(ISO.offset)
            return stream.read(len(ISO.magic)) == ISO.magic
    except OSError:
        return False


def sha512_of(path: Path) -> str:
    """The checksum of the whole image, in hexadecimal digits. Raises `Problems` where it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha512").hexdigest()
    except OSError as error:
        raise Problems([unreadable(str(path), error)]) from error


def read_iso(path: Path, previous: str | None) -> tuple[Document, ...]:
    """The release, and a facts document with the image lists that the image holds.

    `previous` is the version that runs now; without it there is no previous list. Raises `Problems`.
    """
    import pycdlib  # dear, and seldom needed

    image = pycdlib.PyCdlib()
    try:
        with path.open("rb") as stream:
            image.open_fp(stream)
            return tuple(_documents(_Tree(image, str(path)), previous))
    except OSError as error:
        raise Problems([unreadable(str(path), error)]) from error
    except Problems:
        raise
    except Exception as error:  # a damaged image ends in any error that a parser can have
        message = f"cannot be read as an ISO image: {error or type(error).__name__}"
        raise problem("InvalidISO", message, file=str(path), remedy=_REMEDY) from error


def _documents(tree: _Tree, previous: str | None) -> Iterator[Document]:
    data = tree.read((RELEASE,))
    if data is None:
        message = f"is not a Harvester image: no {RELEASE} in it"
        raise problem("NoRelease", message, file=tree.name, remedy="name another image, or a release file")
    if not data.strip():  # so pycdlib shows a file that lies behind the image's end
        message = "is empty: the image is damaged, or ends before it"
        raise problem("InvalidISO", message, file=tree.inside((RELEASE,)), remedy=_REMEDY)
    yield from documents_of(text_of(data, tree.inside((RELEASE,))), tree.inside((RELEASE,)))
    lists = {"current": _images(tree, "current"), "previous": _images(tree, previous) if previous else None}
    if any(images is not None for images in lists.values()):
        found = {name: images for name, images in lists.items() if images is not None}
        yield without_lines(FACTS.document({"facts": {"imageLists": found}}), tree.inside(_LISTS))


def _images(tree: _Tree, version: str) -> list[str] | None:
    """None if there is no such list. An empty one is a fault of the image's build, and would name every image."""
    names = (*_LISTS, version, _LIST)
    data = tree.read(names)
    if data is None:
        return None
    images = [line.strip() for line in text_of(data, tree.inside(names)).splitlines() if line.strip()]
    if not images:
        message = "the image list is empty; with it, every image on the nodes would count as unused"
        raise problem("EmptyImageList", message, file=tree.inside(names), remedy=_REMEDY)
    return images


class _Tree:
    """The files of an image by their long names, in the best of the name spaces that it has."""

    def __init__(self, image: Any, name: str) -> None:
        self._image = image
        self.name = name
        if image.has_rock_ridge():
            self._space = "rr_path"
        else:
            self._space = "joliet_path" if image.has_joliet() else "iso_path"

    def inside(self, names: tuple[str, ...]) -> str:
        """The name by which problems call a file."""
        return f"{self.name}:/{'/'.join(names)}"

    def read(self, names: tuple[str, ...]) -> bytes | None:
        """None if there is no such file."""
        path = ""
        record = None
        for name in names:
            if record is not None and not record.is_dir():
                return None
            if (found := self._child(path or "/", name)) is None:
                return None
            path, record = f"{path}/{found[0]}", found[1]
        return self._content(path, record, names) if record is not None and record.is_file() else None

    def _child(self, folder: str, expected: str) -> tuple[str, Any] | None:
        children = [(self._name_of(record), record) for record in self._image.list_children(**{self._space: folder})]
        for spellings in ({expected}, _short(expected)):
            for name, record in children:
                if name in spellings or (self._space == "iso_path" and _plain(name) in spellings):
                    return name, record
        return None

    def _name_of(self, record: Any) -> str:
        if self._space == "rr_path":
            return str(record.rock_ridge.name().decode("utf-8", "replace")) if record.rock_ridge else ""
        return str(record.file_identifier().decode("utf-16_be" if self._space == "joliet_path" else "ascii", "replace"))

    def _content(self, path: str, record: Any, names: tuple[str, ...]) -> bytes:
        if record.get_data_length() > _LARGEST:
            message = f"is larger than {_LARGEST // 2**20} MiB"
            raise Problems([Problem(reason="TooLarge", message=message, file=self.inside(names), remedy=_REMEDY)])
        content = BytesIO()
        self._image.get_file_from_iso_fp(content, **{self._space: path})
        return content.getvalue()


def _plain(name: str) -> str:
    return name.partition(";")[0].rstrip(".").lower()


def _short(name: str) -> set[str]:
    """A name as it looks in ISO 9660: in full, in its few characters, cut to 8 and 3, and cut as a folder."""
    plain = re.sub(r"[^a-z0-9._]", "_", name.lower())
    base, dot, extension = plain.rpartition(".")
    short = f"{base[:8]}.{extension[:3]}" if dot else extension[:8]
    return {name.lower(), plain, short, re.sub(r"[^a-z0-9_]", "_", name.lower())[:8]}
