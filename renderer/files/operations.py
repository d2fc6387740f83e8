"""The operations that write an output folder, so that a test can let each of them fail."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Protocol

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NO_SWAP = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
"""The answers of systems and file systems that cannot exchange two names."""


class FileOperations(Protocol):
    """Each raises `OSError`, and then has done nothing or, `write` and `link`, a part."""

    def make_folder(self, path: Path) -> None: ...
    def write(self, path: Path, data: bytes) -> None: ...
    def link(self, source: Path, target: Path) -> None: ...
    def swap(self, one: Path, other: Path) -> bool: ...
    def rename(self, source: Path, target: Path) -> None: ...
    def remove(self, path: Path) -> None: ...
    def remove_folder(self, path: Path) -> None: ...


class Disk:
    """The real operations."""

    def make_folder(self, path: Path) -> None:
        path.mkdir(exist_ok=True)

    def write(self, path: Path, data: bytes) -> None:
        path.write_bytes(data)

    def link(self, source: Path, target: Path) -> None:
        """Makes `target` the same file as `source`, or a copy where the file system has no hard links."""
        try:
            os.link(source, target, follow_symlinks=False)
        except (OSError, NotImplementedError):
            shutil.copy2(source, target, follow_symlinks=False)

    def swap(self, one: Path, other: Path) -> bool:
        """Exchanges two folders in one step. False, and nothing done, where the system cannot (renameat2, Linux)."""
        import ctypes

        rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
        if rename is None:
            return False
        if rename(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
            return True
        if (code := ctypes.get_errno()) in _NO_SWAP:
            return False
        raise OSError(code, os.strerror(code), str(other))

    def rename(self, source: Path, target: Path) -> None:
        source.replace(target)

    def remove(self, path: Path) -> None:
        path.unlink()

    def remove_folder(self, path: Path) -> None:
        path.rmdir()
