"""Lets one render at a time into an output folder, and readers while none writes: a lock on the folder above it.

It is `flock` on the folder itself, so no file is left behind, and a process that dies lets go of it. Windows has no
`flock`: there a render writes to standard output only, and what needs a folder is refused.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from renderer.errors import Problem, Problems
from renderer.files.operations import FileOperations

Sleep = Callable[[float], None]

_PAUSE = 0.05
_LOCKLESS = (errno.EBADF, errno.ENOLCK, errno.ENOTSUP, errno.EINVAL)
"""What a file system answers that has no locks on folders, such as some that come over a network."""
_ATTEMPTS = 100


@contextmanager
def writing(folder: Path, disk: FileOperations, sleep: Sleep) -> Iterator[None]:
    """Alone below `folder`, which is made, and taken away again if nothing comes of it. Raises `Problems` if another
    does not let go of it within five seconds, and `OSError`."""
    made: list[Path] = []
    try:
        locks = _locks(folder)
        with _held(folder, locks, locks.LOCK_EX, sleep, lambda: _make(folder, disk, made)):
            yield
    except BaseException:
        for path in reversed(made):
            with suppress(OSError):  # another has put something into it
                disk.remove_folder(path)
        raise


@contextmanager
def reading(folder: Path, sleep: Sleep) -> Iterator[None]:
    """With nobody writing below `folder`. Raises as `writing` does."""
    if not folder.is_dir():
        yield
        return
    locks = _locks(folder)
    with _held(folder, locks, locks.LOCK_SH, sleep, lambda: None):
        yield


def _locks(folder: Path) -> Any:
    """The module `fcntl`. Raises `Problems` where Python has none."""
    try:
        import fcntl
    except ImportError:
        message = "cannot be written to: this system has no file locks (flock)"
        remedy = "run it in WSL2, or leave --output-dir out and redirect the output into a file"
        raise Problems([Problem(reason="NoFileLocks", message=message, file=str(folder), remedy=remedy)]) from None
    return fcntl


@contextmanager
def _held(folder: Path, locks: Any, lock: int, sleep: Sleep, prepare: Callable[[], None]) -> Iterator[None]:
    for _ in range(_ATTEMPTS):
        prepare()
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if _is_ours(descriptor, folder, locks, lock):
                yield
                return
        finally:
            os.close(descriptor)
        sleep(_PAUSE)
    remedy = "wait until it has ended, then run the same command again"
    raise Problems([Problem(reason="Busy", message="another render is writing here", file=str(folder), remedy=remedy)])


def _is_ours(descriptor: int, folder: Path, locks: Any, lock: int) -> bool:
    """Whether the lock was free, and is on the folder that stands there now: a render that fails takes its away. Where
    the file system has no locks, it goes without."""
    try:
        locks.flock(descriptor, lock | locks.LOCK_NB)
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
