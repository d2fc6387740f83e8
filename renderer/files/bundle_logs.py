"""Reads the ends of pods' logs in support bundles, zipped or unpacked: `logs/<namespace>/<pod>/<container>.log`.

A log is read when somebody asks for its pod, and never unpacked to disk. What cannot be read is as if it were not
there: a log only adds to what objects say.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import BinaryIO

from renderer.files.filesystem import bundle_root, link_outside

_END = 64 * 2**10
"""Of a log so many bytes are looked at, from its end."""
_MOST = 64 * 2**20
"""Of a packed log so many bytes are unpacked on the way there."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_ENDING = ".log"


class BundleLogs:
    """The logs in these inputs, as far as they are bundles."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = [Path(path) for path in paths]
        self.of = cache(self._of)

    def _of(self, namespace: str, pod: str) -> Mapping[str, str]:
        """The end of each container's log, by its name; none where there is no log."""
        if not (_NAME.fullmatch(namespace) and _NAME.fullmatch(pod)):
            return {}
        found: dict[str, str] = {}
        for path in self._paths:
            found |= _in_folder(root, namespace, pod) if (root := bundle_root(path)) else _in_zip(path, namespace, pod)
        return found


def _in_folder(root: Path, namespace: str, pod: str) -> dict[str, str]:
    folder = root / "logs" / namespace / pod
    outside = any(link_outside(place, root) for place in (root / "logs", folder.parent, folder))
    files = sorted(folder.glob(f"*{_ENDING}")) if folder.is_dir() and not outside else []
    found: dict[str, str] = {}
    for file in files:
        try:
            if not link_outside(file, root) and file.is_file():
                with file.open("rb") as stream:
                    stream.seek(max(0, file.stat().st_size - _END))
                    found[file.name.removesuffix(_ENDING)] = _text(stream.read(_END))
        except OSError:
            continue
    return found


def _in_zip(path: Path, namespace: str, pod: str) -> dict[str, str]:
    found: dict[str, str] = {}
    wanted = re.compile(rf"(?:[^/]+/)?logs/{re.escape(namespace)}/{re.escape(pod)}/([^/]+){re.escape(_ENDING)}")
    try:
        if not path.is_file() or not zipfile.is_zipfile(path):
            return {}
        with zipfile.ZipFile(path) as archive:
            for entry in archive.infolist():
                if match := wanted.fullmatch(entry.filename):
                    with archive.open(entry) as stream:
                        found[match[1]] = _text(_end_of(stream))  # type: ignore[arg-type]
    except Exception:  # a damaged archive ends in any error, and its objects have said so
        return found
    return found


def _end_of(stream: BinaryIO) -> bytes:
    """The end of what is unpacked, never kept whole."""
    end, read = b"", 0
    while read < _MOST and (part := stream.read(2**20)):
        read += len(part)
        end = (end + part)[-_END:]
    return end


def _text(data: bytes) -> str:
    return data.decode("utf-8", errors="replace")
