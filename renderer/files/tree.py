"""Writes a rendering to its folder so that it is there wholly or not at all, and says how a folder differs from one.

New and old bytes are staged first, in a folder inside, since that is what a full disk stops. Then files are replaced
one by one, stale ones removed, and the index is replaced last. If an operation fails, all are taken back; if the
process dies, the journal beside the staged files says which files are ours, and the next run writes everything again.
From the first look to the last sweep a render is alone there.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from renderer.errors import Problem, Problems
from renderer.files.lock import Sleep, reading, writing
from renderer.files.look import unreadable
from renderer.files.operations import Disk, FileOperations
from renderer.files.tree_state import (
    INDEX,
    JOURNAL,
    STAGING,
    Files,
    TreeChanges,
    as_bytes,
    changes,
    look,
    no_folder,
    obstacles,
)


def check_tree(folder: Path, files: Files, *, sleep: Sleep = time.sleep) -> TreeChanges:
    """How the folder differs from `files`. Raises `Problems` where `write_tree` would refuse the folder."""
    wanted = as_bytes(files)
    try:
        with reading(folder.parent, sleep):
            state = look(folder, wanted)
            if problems := list(obstacles(state, wanted)):
                raise Problems(problems)
            return changes(state, wanted)
    except OSError as error:
        raise Problems([unreadable(str(folder.parent), error)]) from error


def write_tree(
    folder: Path, files: Files, operations: FileOperations | None = None, *, sleep: Sleep = time.sleep
) -> TreeChanges:
    """Makes the plan's folder hold `files`, with `index.yaml` among them; answers what was done.

    Files of an earlier render that are not wanted any more are removed, and folders that they leave empty. Others are
    never touched; one in the way is a problem, and so is a folder that holds anything but an earlier render. Files that
    do not change are not written. Waits a little while another render writes there. Raises `Problems`; then the folder
    is as it was.
    """
    wanted = as_bytes(files)
    if INDEX not in wanted:
        raise ValueError(f"a rendering without {INDEX}")
    if obstacle := no_folder(folder):
        raise Problems([obstacle])
    disk = operations or Disk()
    try:
        with writing(folder.parent, disk, sleep):
            return _written(folder, wanted, disk)
    except OSError as error:
        raise Problems([_refusal(folder, error, whole=True)]) from error


def _written(folder: Path, wanted: Mapping[str, bytes], disk: FileOperations) -> TreeChanges:
    state = look(folder, wanted)
    if problems := list(obstacles(state, wanted)):
        raise Problems(problems)
    done = changes(state, wanted)
    if done or state.was_cut_off:
        new = {path: wanted[path] for path in (*done.missing, *done.changed)}
        old = {path: state.old[path] for path in (*done.changed, *done.stale)}
        gone = sorted(state.owned - set(wanted))
        _Write(folder, new, old, gone, state.journal, disk).run()
    return done


class _Write:
    """One write: what has been staged, made and replaced so far, so that it can be taken back."""

    def __init__(
        self,
        folder: Path,
        new: Mapping[str, bytes],
        old: Mapping[str, bytes],
        gone: Sequence[str],
        journal: set[str],
        operations: FileOperations,
    ) -> None:
        self._folder = folder
        self._staging = folder / STAGING
        self._new = new
        self._old = old
        self._gone = gone
        self._journal = journal
        self._operations = operations
        self._was_cut_off = self._staging.exists()
        self._staged_new = {path: self._staging / f"new-{number}" for number, path in enumerate(new)}
        self._staged_old = {path: self._staging / f"old-{number}" for number, path in enumerate(old)}
        self._made: list[Path] = []
        self._touched: list[str] = []

    def run(self) -> None:
        try:
            self._stage()
            self._install()
        except OSError as error:
            raise Problems([_refusal(self._folder, error, whole=self._take_back())]) from error
        except BaseException:  # Ctrl-C as well
            self._take_back()
            raise
        with suppress(OSError):  # the tree is there; the next run sweeps up
            self._sweep()

    def _stage(self) -> None:
        """Everything that needs room on the disk. The journal comes first and keeps what an earlier one says."""
        self._make_folder(self._staging)
        journal = json.dumps(sorted({*self._journal, *self._new}), indent=0).encode()
        self._operations.write(self._staging / "journal", journal)
        self._operations.replace(self._staging / "journal", self._staging / JOURNAL)
        for path, content in self._new.items():
            self._operations.write(self._staged_new[path], content)
        for path, content in self._old.items():
            self._operations.write(self._staged_old[path], content)
        for folder in dict.fromkeys((self._folder / path).parent for path in self._new):
            self._make_folder(folder)

    def _install(self) -> None:
        for path in sorted(self._new, key=lambda path: (path == INDEX, path)):
            if path == INDEX:
                self._remove_stale()
            self._touched.append(path)
            self._operations.replace(self._staged_new[path], self._folder / path)
        if INDEX not in self._new:
            self._remove_stale()

    def _remove_stale(self) -> None:
        """And the folders that are left empty, also those that an earlier run did not get to."""
        for path in self._gone:
            if path in self._old:
                self._touched.append(path)
                self._operations.remove(self._folder / path)
        left = {
            below for path in self._gone for below in (self._folder / path).parents if self._folder in below.parents
        }
        for folder in sorted(left, key=lambda folder: len(folder.parts), reverse=True):
            if folder.is_dir() and not any(folder.iterdir()):
                self._operations.remove_folder(folder)

    def _take_back(self) -> bool:
        """Whether the folder is again as it was. What cannot be taken back stays in the journal for the next run."""
        try:
            for path in reversed(self._touched):
                self._restore(path)
            if not self._was_cut_off:
                self._sweep()
            for folder in reversed(self._made):
                with suppress(OSError):  # it holds other files
                    self._operations.remove_folder(folder)
        except OSError:
            return False
        return True

    def _restore(self, path: str) -> None:
        target = self._folder / path
        if self._staged_new[path].exists() if path in self._new else target.exists():
            return  # it was the operation that failed
        if path in self._old:
            self._make_folder(target.parent)
            self._operations.replace(self._staged_old[path], target)
        else:
            self._operations.remove(target)

    def _sweep(self) -> None:
        if not self._staging.exists():
            return
        for path in sorted(self._staging.iterdir()):
            self._operations.remove(path)
        self._operations.remove_folder(self._staging)

    def _make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self._make_folder(folder.parent)
        self._operations.make_folder(folder)
        if folder != self._staging:
            self._made.append(folder)


def _refusal(folder: Path, error: OSError, *, whole: bool) -> Problem:
    end = "the folder is unchanged" if whole else "the folder is partly written"
    return Problem(
        reason="CannotWrite",
        message=f"cannot be written: {error.strerror or error}; {end}",
        file=str(folder),
        remedy="free disk space or grant write access, then run the command again",
    )
