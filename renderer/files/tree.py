"""Writes a rendering to its folder so that the folder always holds one whole rendering; compares a folder with one.

The new folder is built beside the old one, in a staging folder: new bytes are written there, and what stays, unchanged
files and those of others, is linked. Then the two folders change places in one system call. Where the system has no
such call, the old folder steps aside first, and for a moment there is none. What a killed process leaves behind is
cleaned up by the next write, which also puts back an old folder that was aside. From the first look to the clean-up a
write is alone there.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from pathlib import Path

from renderer.errors import Problem, Problems
from renderer.files.filesystem import unreadable
from renderer.files.lock import Sleep, reading, writing
from renderer.files.operations import Disk, FileOperations
from renderer.files.tree_state import (
    INDEX,
    STAGING,
    Files,
    TreeChanges,
    as_bytes,
    changes,
    empty_folders,
    files_below,
    look,
    no_folder,
    obstacles,
)


def check_tree(folder: Path, files: Files, *, sleep: Sleep = time.sleep) -> TreeChanges:
    """The differences between the folder and `files`. Raises `Problems` where `write_tree` would refuse the folder."""
    expected = as_bytes(files)
    try:
        with reading(folder.parent, sleep):
            state = look(folder, expected)
            if problems := list(obstacles(state, expected)):
                raise Problems(problems)
            return changes(state, expected)
    except OSError as error:
        raise Problems([unreadable(str(folder.parent), error)]) from error


def write_tree(
    folder: Path, files: Files, operations: FileOperations | None = None, *, sleep: Sleep = time.sleep
) -> TreeChanges:
    """Makes the plan's folder hold `files`, with `index.yaml` among them; answers what was done.

    Files of an earlier render that are no longer rendered are removed, and folders that they leave empty. Others are
    never touched; one in the way is a problem, and so is a folder that holds anything but an earlier render. Files that
    do not change are not written. Waits a little while another render writes there. Raises `Problems`; then the folder
    is as it was.
    """
    expected = as_bytes(files)
    if INDEX not in expected:
        raise ValueError(f"a rendering without {INDEX}")
    disk = operations or Disk()
    try:
        if obstacle := no_folder(folder):
            raise Problems([obstacle])
        with writing(folder.parent, disk, sleep):
            return _written(folder, expected, _Staging(folder, disk))
    except OSError as error:
        raise Problems([_refusal(folder, error)]) from error


def remove_tree(folder: Path, operations: FileOperations | None = None, *, sleep: Sleep = time.sleep) -> TreeChanges:
    """Removes the files of an earlier render, and the folders that they leave empty; answers which. Others stay. Raises
    `Problems`."""
    disk = operations or Disk()
    try:
        with writing(folder.parent, disk, sleep):
            state = look(folder, {})
            if state.problems:
                raise Problems(state.problems)
            done = changes(state, {})
            for path in sorted(done.stale, key=lambda path: (path == INDEX, path)):
                disk.remove(folder / path)
            for parent, _, _ in os.walk(folder, topdown=False):
                with suppress(OSError):  # somebody else's file is in it
                    disk.remove_folder(Path(parent))
            return done
    except OSError as error:
        raise Problems([_refusal(folder, error)]) from error


def _written(folder: Path, expected: Mapping[str, bytes], staging: _Staging) -> TreeChanges:
    staging.recover()
    state = look(folder, expected)
    if problems := list(obstacles(state, expected)):
        raise Problems(problems)
    done = changes(state, expected)
    if done:
        replaced = {path: expected[path] for path in (*done.missing, *done.changed)}
        kept = [path for path in expected if path not in replaced]
        staging.build([*kept, *done.foreign], replaced)
        staging.install({*expected, *state.owned, *done.foreign})
    return done


class _Staging:
    """The staging folder beside the plan's folder: where the next folder is built, and where the last one goes."""

    def __init__(self, folder: Path, disk: FileOperations) -> None:
        self._folder = folder
        self._disk = disk
        self._staging = folder.parent / STAGING
        self._next = self._staging / "next"
        self._last = self._staging / "last"

    def recover(self) -> None:
        """Puts back a folder that a killed write had moved aside, and removes what else it left."""
        if self._last.is_dir() and not self._folder.exists():
            self._disk.rename(self._last, self._folder)
        self._clear()

    def build(self, kept: list[str], replaced: Mapping[str, bytes]) -> None:
        """The whole folder beside the old one; its index is written last. A failure leaves nothing behind."""
        with self._cleared_after_failure():
            self._make_folder(self._staging)
            self._disk.write(self._staging / ".gitignore", b"*\n")
            self._make_folder(self._next)
            for path in (*kept, *empty_folders(self._folder)):
                self._make_parents(path)
                if (self._folder / path).is_dir() and not (self._folder / path).is_symlink():
                    self._make_folder(self._next / path, self._folder / path)
                else:
                    self._disk.link(self._folder / path, self._next / path)
            for path in sorted(replaced, key=lambda path: (path == INDEX, path)):
                self._make_parents(path)
                self._disk.write(self._next / path, replaced[path])

    def install(self, known: Set[str]) -> None:
        """Puts the next folder in the place of the last one, all at once, and removes that one.

        A file that is not `known` came into the last folder while the next one was built, and moves to it.
        """
        with self._cleared_after_failure():
            if not self._folder.exists():
                self._disk.rename(self._next, self._folder)
            elif not self._disk.swap(self._next, self._folder):
                self._exchange()
        with suppress(OSError):  # the folder is there; the next write clears up
            for last in (self._next, self._last):
                self._rescue(last, known)
            self._clear()

    def _exchange(self) -> None:
        self._disk.rename(self._folder, self._last)
        try:
            self._disk.rename(self._next, self._folder)
        except OSError:
            self._disk.rename(self._last, self._folder)
            raise

    def _rescue(self, last: Path, known: Set[str]) -> None:
        for path in sorted({*files_below(last)} - known):
            (self._folder / path).parent.mkdir(parents=True, exist_ok=True)
            self._disk.rename(last / path, self._folder / path)

    @contextmanager
    def _cleared_after_failure(self) -> Iterator[None]:
        try:
            yield
        except BaseException:  # Ctrl-C as well
            with suppress(OSError):
                self._clear()
            raise

    def _clear(self) -> None:
        if not self._staging.exists() or (self._last.is_dir() and not self._folder.exists()):
            return
        for tree in (self._next, self._last):
            if tree.is_dir():
                self._discard(tree)
        for path in self._staging.iterdir():
            self._disk.remove(path)
        self._disk.remove_folder(self._staging)

    def _discard(self, tree: Path) -> None:
        for path in [*files_below(tree)]:
            self._disk.remove(tree / path)
        for parent, _, _ in os.walk(tree, topdown=False):
            self._disk.remove_folder(Path(parent))

    def _make_parents(self, path: str) -> None:
        for above in reversed(Path(path).parents[:-1]):
            self._make_folder(self._next / above, self._folder / above)

    def _make_folder(self, folder: Path, like: Path | None = None) -> None:
        if folder.is_dir():
            return
        self._disk.make_folder(folder)
        if like is not None and like.is_dir():
            shutil.copymode(like, folder)


def _refusal(folder: Path, error: OSError) -> Problem:
    return Problem(
        reason="CannotWrite",
        message=f"cannot be written: {error.strerror or error}; the folder is unchanged",
        file=str(folder),
        remedy="free disk space or grant write access, then run the command again",
    )
