"""Keeps compiled templates in the user's cache folder, so that each template is compiled once.

Nothing depends on it: a cache that cannot be read or written, or that others may write to, is ignored. So it is where
files have no owner (Windows).
"""

from __future__ import annotations

import marshal
import os
import stat
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from zlib import crc32

_MAKERS = ("jinja2.compiler", "renderer.templating")
_HAS_OWNERS = hasattr(os, "getuid")


class CodeCache(dict[str, bytes]):
    """Code by key. `save` writes it if anything was added since it was read."""

    def __init__(self, folder: Path | None = None) -> None:
        found = folder or _cache_folder()
        self._path = found and found / f"templates-{sys.implementation.cache_tag}-{_stamp()}.bin"
        super().__init__(_read(self._path) if self._path else {})
        self._known = len(self)

    def save(self) -> None:
        if self._path is None or len(self) == self._known or not _HAS_OWNERS:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with tempfile.NamedTemporaryFile(dir=self._path.parent, delete=False) as file:
                file.write(marshal.dumps(dict(self)))
            Path(file.name).replace(self._path)
        except OSError:
            return


def _stamp() -> str:
    """Changes with whatever makes the code: the template compiler and our settings of it."""
    origins = [Path(spec.origin) for spec in map(find_spec, _MAKERS) if spec and spec.origin]
    files = [file.stat() for origin in origins for file in _files_of(origin)]
    return f"{crc32(repr([(file.st_size, file.st_mtime_ns) for file in files]).encode()):08x}"


def _files_of(origin: Path) -> list[Path]:
    """A module's file, all files of a package, or the archive in which they are."""
    if origin.name == "__init__.py" and origin.exists():
        return sorted(origin.parent.glob("*.py"))
    return [next(path for path in (origin, *origin.parents) if path.exists())]


def _cache_folder() -> Path | None:
    """None if there is no home, as in a container with an unknown user."""
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "upgradeplan"
    except RuntimeError:
        return None


def _read(path: Path) -> dict[str, bytes]:
    try:
        if not (_HAS_OWNERS and _is_ours(path)):
            return {}
        code = marshal.loads(path.read_bytes())  # noqa: S302 - written by this user alone
    except (OSError, ValueError, EOFError, TypeError, RuntimeError):
        return {}
    return code if isinstance(code, dict) else {}


def _is_ours(path: Path) -> bool:
    found = path.stat()
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
