"""Admits one render at a time to an output folder, or readers while none writes, by a lock on the folder above it.

The lock is `flock` on the folder itself: no file is left behind, and a process that dies releases it. Where there are
no such locks (Windows, some network file systems), nothing is locked, and two renders into one folder at the same time
are the user's to avoid.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType

from renderer.errors import Problem, Problems
from renderer.files.operations import FileOperations

Sleep = Callable[[float], None]

_PAUSE = 0.05
_LOCKLESS = (errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL)
"""The answers of a file system that has no locks on folders, such as some network file systems."""
_ATTEMPTS = 100


@contextmanager
def writing(folder: Path, disk: FileOperations, sleep: Sleep) -> Iterator[None]:
    """Runs alone below `folder`, which is created first, and removed again if the write fails.

    Raises `Problems` if another render holds the lock for more than five seconds, and `OSError`.
    """
    made: list[Path] = []
    try:
        with _held(folder, sleep, lambda: _make(folder, disk, made), shared=False):
            yield
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):  # another has put something into it
                disk.remove_folder(path)
        raise


@contextmanager
def reading(folder: Path, sleep: Sleep) -> Iterator[None]:
    """Runs while no other process writes below `folder`. Raises as `writing` does."""
    if not folder.is_dir():
        yield
        return
    with _held(folder, sleep, lambda: None, shared=True):
        yield


@contextmanager
def _held(folder: Path, sleep: Sleep, prepare: Callable[[], None], *, shared: bool) -> Iterator[None]:
    locks = _locks()
    if locks is None:
        prepare()
        yield
        return
    for _ in range(_ATTEMPTS):
        prepare()
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if _is_ours(locks, descriptor, folder, shared=shared):
                yield
                return
        finally:
            os.close(descriptor)
        sleep(_PAUSE)
    remedy = "wait until it has finished, then run the command again"
    raise Problems(
        [Problem(reason="Busy", message="another render is writing to this folder", file=str(folder), remedy=remedy)]
    )


def _locks() -> ModuleType | None:
    """The module that locks; None on Windows, which has none."""
    try:
        import fcntl
    except ImportError:
        return None
    return fcntl


def _is_ours(locks: ModuleType, descriptor: int, folder: Path, *, shared: bool) -> bool:
    """True if the lock was free and is on the folder that is there now; a render that fails removes its folder.

    True also where the file system has no locks.
    """
    try:
        locks.flock(descriptor, (locks.LOCK_SH if shared else locks.LOCK_EX) | locks.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _LOCKLESS:
            raise
    try:
        return os.path.samestat(os.fstat(descriptor), folder.stat())
    except FileNotFoundError:
        return False


def _make(folder: Path, disk: FileOperations, made: list[Path]) -> None:
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        disk.make_folder(path)
        made.append(path)
