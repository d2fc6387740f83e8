"""A rendering on disk: there wholly or not at all, others' files never touched, stale ones gone, whatever breaks."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from renderer.errors import ExitCode, Problems
from renderer.files.operations import Disk, FileOperations
from renderer.files.tree import check_tree, write_tree
from renderer.files.tree_state import STAGING, TreeChanges, is_inside
from renderer.yaml_io import dump

MOVE = "\n    remedy: move it, or use another --output-dir"
RESTORE = "\n    remedy: restore the file from version control, or remove the folder"


def rendering(**files: str) -> dict[str, str]:
    """A tree with its index: `a__b="x"` is the file `a/b.yaml`."""
    tree = {f"{name.replace('__', '/')}.yaml": f"{text}\n" for name, text in files.items()}
    return {**tree, "index.yaml": dump({"kind": "RenderedPlan", "files": sorted(tree)})}


FIRST = rendering(ten__a="1", ten__b="1", twenty__c="1", top="1")
SECOND = rendering(ten__a="1", ten__b="2", thirty__d="2", top="2")
THIRD = rendering(ten__b="3", thirty__deep__e="3")


def standing(folder: Path) -> dict[str, str]:
    """All files of a folder, links by where they point, and folders that are empty."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*")) if folder.exists() else ():
        name = path.relative_to(folder).as_posix()
        if path.is_symlink():
            found[name] = f"-> {path.readlink()}"
        elif path.is_file():
            found[name] = path.read_text(encoding="utf-8", errors="replace")
        elif not any(path.iterdir()):
            found[f"{name}/"] = ""
    return found


def refused(folder: Path, files: Mapping[str, str], operations: FileOperations | None = None) -> str:
    before = standing(folder.parent)
    with pytest.raises(Problems) as caught:
        write_tree(folder, files, operations)
    assert standing(folder.parent) == before
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    return str(caught.value).replace(str(folder.parent), "DIR")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "plan"


# --------------------------------------------------------------------------------------------------- what is written


def test_a_rendering_is_written_and_says_what_was_done(folder: Path) -> None:
    made = write_tree(folder / "below", FIRST)
    assert made == TreeChanges(missing=tuple(sorted(FIRST)))
    assert standing(folder / "below") == FIRST
    assert {oct(path.stat().st_mode & 0o777) for path in folder.rglob("*.yaml")} == {oct(0o666 & ~umask())}


def umask() -> int:
    current = os.umask(0o022)
    os.umask(current)
    return current


def test_bytes_are_written_as_they_are(folder: Path) -> None:
    write_tree(folder, {"index.yaml": b"kind: RenderedPlan\nfiles: []\n", "a": "é\n".encode()})
    assert (folder / "a").read_bytes() == b"\xc3\xa9\n"


def test_stale_files_go_with_the_folders_that_they_leave_empty(folder: Path) -> None:
    write_tree(folder, FIRST)
    assert write_tree(folder, SECOND) == TreeChanges(
        missing=("thirty/d.yaml",),
        changed=("index.yaml", "ten/b.yaml", "top.yaml"),
        stale=("twenty/c.yaml",),
    )
    assert standing(folder) == SECOND
    write_tree(folder, THIRD)
    assert standing(folder) == THIRD


def test_foreign_files_are_never_touched(folder: Path) -> None:
    write_tree(folder, FIRST)
    (folder / "twenty/mine.txt").write_text("mine")
    (folder / "README.md").write_text("mine")
    (folder / "link").symlink_to("/nowhere")
    mine = {"twenty/mine.txt": "mine", "README.md": "mine", "link": "-> /nowhere"}
    assert write_tree(folder, SECOND).foreign == ("README.md", "link", "twenty/mine.txt")
    assert standing(folder) == dict(sorted({**SECOND, **mine}.items()))


def test_what_does_not_change_is_not_written(folder: Path) -> None:
    write_tree(folder, FIRST)
    for path in folder.rglob("*.yaml"):
        os.utime(path, (1, 1))
    write_tree(folder, SECOND)
    kept = {path.relative_to(folder).as_posix() for path in folder.rglob("*.yaml") if path.stat().st_mtime == 1}
    assert kept == {"ten/a.yaml"}
    operations = Recorded()
    assert not write_tree(folder, SECOND, operations)
    assert operations.done == []


def test_files_of_ours_are_written_over_even_if_they_were_edited_or_removed(folder: Path) -> None:
    write_tree(folder, FIRST)
    (folder / "ten/a.yaml").write_text("edited")
    (folder / "top.yaml").unlink()
    write_tree(folder, FIRST)
    assert standing(folder) == FIRST


def test_an_equal_file_that_is_not_ours_becomes_ours(folder: Path) -> None:
    write_tree(folder, FIRST)
    (folder / "thirty").mkdir()
    (folder / "thirty/d.yaml").write_text(SECOND["thirty/d.yaml"])
    write_tree(folder, SECOND)
    write_tree(folder, FIRST)
    assert standing(folder) == FIRST


# ----------------------------------------------------------------------------------------------------- what is refused


def test_a_foreign_file_in_the_way_is_named(folder: Path) -> None:
    write_tree(folder, FIRST)
    (folder / "thirty").mkdir()
    (folder / "thirty/d.yaml").write_text("mine")
    assert refused(folder, SECOND) == (
        f"DIR/plan/thirty/d.yaml: would be overwritten, and is not from an earlier render{MOVE}"
    )


def test_a_folder_that_is_not_from_an_earlier_render_is_refused(folder: Path) -> None:
    folder.mkdir()
    write_tree(folder, FIRST)
    (folder / "index.yaml").unlink()
    assert refused(folder, FIRST) == f"DIR/plan: contains ten but no index.yaml of an earlier render{MOVE}"


@pytest.mark.parametrize(
    ("index", "message"),
    [
        (
            "kind: Other\nfiles: []\n",
            f"index.yaml: is not a RenderedPlan: the folder is not from an earlier render{MOVE}",
        ),
        ("kind: RenderedPlan\n", f"index.yaml: is not a RenderedPlan: the folder is not from an earlier render{MOVE}"),
        ("", f"index.yaml: is not a RenderedPlan: the folder is not from an earlier render{MOVE}"),
        (
            "kind: RenderedPlan\nfiles:\n- a.yaml\n- ../../etc/passwd\n- 5\n",
            f"index.yaml:4: files[1]: '../../etc/passwd' is not a path below the folder{RESTORE}\n"
            f"DIR/plan/index.yaml:5: files[2]: 5 is not a path below the folder{RESTORE}",
        ),
        (
            "<<<<<<< HEAD\nkind: RenderedPlan\n=======\nkind: RenderedPlan\n>>>>>>> other\n",
            f"index.yaml:2: mapping values are not allowed in this context{RESTORE}",
        ),
        ("\0", f"index.yaml: is a binary file{RESTORE}"),
        ("\xff\xfe", f"index.yaml: is UTF-16 text, not UTF-8 text{RESTORE}"),
        ("a: \xff", f"index.yaml:1: byte 0xff is not UTF-8{RESTORE}"),
    ],
)
def test_an_index_that_is_not_ours_or_damaged_is_refused(folder: Path, index: str, message: str) -> None:
    write_tree(folder, FIRST)
    (folder / "index.yaml").write_text(index, encoding="latin-1")
    assert refused(folder, SECOND) == f"DIR/plan/{message}"
    with pytest.raises(Problems):
        check_tree(folder, SECOND)


@pytest.mark.parametrize("name", ["thirty", "thirty/d.yaml", "ten/b.yaml", "twenty", "index.yaml", f"../{STAGING}"])
def test_nothing_is_written_or_removed_through_a_link(folder: Path, tmp_path: Path, name: str) -> None:
    write_tree(folder, FIRST)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "c.yaml").write_text(FIRST["twenty/c.yaml"])
    path = folder / name
    if path.is_dir():
        path.rename(tmp_path / "moved")
    else:
        path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(outside if "." not in path.name[1:] else outside / "c.yaml")
    name = name.removeprefix("../") if name.startswith("..") else f"plan/{name}"
    assert refused(folder, SECOND) == f"DIR/{name}: is a symbolic link, and nothing is written through one{MOVE}"


def test_a_plan_folder_that_leads_elsewhere_or_is_a_file_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    folder.symlink_to("other")
    assert refused(folder, FIRST) == f"DIR/plan: is a symbolic link; a folder is expected{MOVE}"
    folder.unlink()
    folder.write_text("mine")
    assert refused(folder, FIRST) == f"DIR/plan: is a file; a folder is expected{MOVE}"
    assert refused(folder / "deep/below", FIRST).startswith(f"{folder}: is a file; a folder is expected")


def test_files_where_folders_are_expected_and_the_other_way_round_are_refused(folder: Path) -> None:
    write_tree(folder, FIRST)
    (folder / "thirty").write_text("mine")
    assert refused(folder, SECOND) == f"DIR/plan/thirty: is a file; a folder is expected{MOVE}"
    (folder / "thirty").unlink()
    (folder / "thirty/d.yaml").mkdir(parents=True)
    assert refused(folder, SECOND) == f"DIR/plan/thirty/d.yaml: is a folder; a file is expected{MOVE}"


def test_all_that_is_in_the_way_is_said_in_one_run(folder: Path) -> None:
    write_tree(folder, FIRST)
    (folder / "thirty/deep").mkdir(parents=True)
    (folder / "thirty/deep/e.yaml").write_text("mine")
    (folder / "thirty/d.yaml").write_text("mine")
    both = {**SECOND, **THIRD}
    assert refused(folder, both).count("would be overwritten") == 2


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "a//b", "./a", "a/", "", "a\\b", "a\0b"])
def test_a_rendering_that_leads_out_of_its_folder_is_a_bug_of_ours(folder: Path, path: str) -> None:
    with pytest.raises(ValueError, match="not a path below"):
        write_tree(folder, {**FIRST, path: "x"})
    with pytest.raises(ValueError, match="without index"):
        write_tree(folder, {"a": "x"})
    assert not folder.exists()


@given(st.text("a./\\\0-", max_size=8))
def test_a_path_that_is_inside_stays_inside(path: str) -> None:
    if is_inside(path):
        joined = os.path.normpath(f"/top/{path}")
        assert joined == f"/top/{path}"


# ------------------------------------------------------------------------------------------------------------- check


def test_check_names_what_is_missing_changed_stale_and_foreign(folder: Path) -> None:
    assert check_tree(folder, FIRST) == TreeChanges(missing=tuple(sorted(FIRST)))
    write_tree(folder, FIRST)
    assert not check_tree(folder, FIRST)
    (folder / "twenty/mine.txt").write_text("mine")
    (folder / "ten/a.yaml").write_text("edited")
    found = check_tree(folder, SECOND)
    assert found == TreeChanges(
        missing=("thirty/d.yaml",),
        changed=("index.yaml", "ten/a.yaml", "ten/b.yaml", "top.yaml"),
        stale=("twenty/c.yaml",),
        foreign=("twenty/mine.txt",),
    )
    assert found
    assert not TreeChanges(foreign=("x",))


@pytest.mark.parametrize("wrong", ["no index", "foreign folder", "foreign file"])
def test_check_refuses_what_a_render_would_refuse(folder: Path, wrong: str) -> None:
    """Else it would say that a render mends it."""
    write_tree(folder, FIRST)
    if wrong == "foreign file":
        (folder / "thirty").mkdir()
        (folder / "thirty/d.yaml").write_text("mine")
    else:
        (folder / "index.yaml").unlink()
    if wrong == "foreign folder":
        (folder / "mine.txt").write_text("mine")
    told = refused(folder, SECOND)
    with pytest.raises(Problems) as caught:
        check_tree(folder, SECOND)
    assert str(caught.value).replace(str(folder.parent), "DIR") == told


@pytest.mark.parametrize("name", ["ten/a.yaml", "index.yaml", "thirty"])
def test_what_is_no_plain_file_is_never_opened(folder: Path, name: str) -> None:
    """A pipe would keep the reader for ever."""
    write_tree(folder, FIRST)
    path = folder / name
    path.unlink(missing_ok=True)
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    for act in (write_tree, check_tree):
        with pytest.raises(Problems, match=rf"{name}: is a (device, a pipe or a socket; a file|file; a folder) is"):
            act(folder, SECOND)


def test_a_device_is_no_folder() -> None:
    with pytest.raises(Problems, match=r"^/dev/null: is a device, a pipe or a socket; a folder is expected\n"):
        write_tree(Path("/dev/null/plan"), FIRST)


# ------------------------------------------------------------------------------------------- when the disk says no


class WriterKilled(BaseException):
    """The process dies: nothing is caught, nothing is cleaned up."""


class Recorded:
    """The real operations, written down; the one with number `at` ends in `error`, half done if it writes."""

    def __init__(
        self, at: int = -1, error: BaseException | None = None, *, for_good: bool = False, swaps: bool = True
    ) -> None:
        self.done: list[str] = []
        self._swaps = swaps
        self._at = at
        self._error = error
        self._for_good = for_good
        self._disk = Disk()

    def _do(self, operation: str, *arguments: Any) -> Any:
        number = len(self.done)
        self.done.append(f"{operation} {arguments[-1] if operation in ('link', 'swap', 'rename') else arguments[0]}")
        if self._error is not None and (number == self._at or (self._for_good and number > self._at)):
            if operation == "write" and number == self._at:
                self._disk.write(arguments[0], arguments[1][: len(arguments[1]) // 2])
            raise self._error
        return getattr(self._disk, operation)(*arguments)

    def make_folder(self, path: Path) -> None:
        self._do("make_folder", path)

    def write(self, path: Path, data: bytes) -> None:
        self._do("write", path, data)

    def link(self, source: Path, target: Path) -> None:
        self._do("link", source, target)

    def swap(self, one: Path, other: Path) -> bool:
        return bool(self._do("swap", one, other)) if self._swaps else False

    def rename(self, source: Path, target: Path) -> None:
        self._do("rename", source, target)

    def remove(self, path: Path) -> None:
        self._do("remove", path)

    def remove_folder(self, path: Path) -> None:
        self._do("remove_folder", path)


def steps(
    tmp_path: Path, before: Mapping[str, str] | None, after: Mapping[str, str], *, swaps: bool = True
) -> list[str]:
    """The operations of a write that goes well."""
    folder = tmp_path / f"counted-{swaps}" / "plan"
    folder.parent.mkdir(exist_ok=True)
    if before:
        write_tree(folder, before)
    operations = Recorded(swaps=swaps)
    write_tree(folder, after, operations)
    return [step.replace(f"{folder.parent}/", "") for step in operations.done]


WRITES = [(None, FIRST), (FIRST, SECOND), (SECOND, THIRD)]
SWAPS = pytest.mark.parametrize("swaps", [True, False], ids=["swap", "no swap"])
"""With the system call that exchanges two folders, and without it."""


@pytest.mark.parametrize(("before", "after"), WRITES, ids=["first", "second", "third"])
def test_the_folder_changes_in_one_step_once_everything_is_written(
    tmp_path: Path, before: Mapping[str, str] | None, after: Mapping[str, str]
) -> None:
    done = steps(tmp_path, before, after)
    (change,) = (number for number, step in enumerate(done) if step in ("swap plan", "rename plan"))
    assert all(step.split()[1].startswith(STAGING) for number, step in enumerate(done) if number != change)
    assert not any(step.startswith(("write", "link", "make_folder")) for step in done[change:])
    assert done[change - 1] == f"write {STAGING}/next/index.yaml"


@SWAPS
@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=["full", "^C"]
)
@pytest.mark.parametrize(("before", "after"), WRITES, ids=["first", "second", "third"])
@pytest.mark.slow
def test_a_failing_operation_leaves_the_old_tree_byte_for_byte(
    tmp_path: Path, before: Mapping[str, str] | None, after: Mapping[str, str], error: BaseException, *, swaps: bool
) -> None:
    for at in range(len(steps(tmp_path, before, after, swaps=swaps))):
        folder = tmp_path / f"{at}" / "plan"
        folder.parent.mkdir()
        if before:
            write_tree(folder, before)
        try:
            write_tree(folder, after, Recorded(at, error, swaps=swaps))
        except Problems as problems:
            (problem,) = problems.problems
            assert problem.message == "cannot be written: No space left on device; the folder is unchanged"
            assert standing(folder.parent) == {f"plan/{name}": text for name, text in (before or {}).items()}, at
        except KeyboardInterrupt:
            pass
        if standing(folder) != after:
            assert standing(folder) == (before or {}) or not swaps, at
            write_tree(folder, after)
        assert standing(folder) == after, at


def killed(folder: Path, files: Mapping[str, str], at: int, *, swaps: bool = True) -> None:
    """A write that ends for good at the operation with this number, if there are as many."""
    with contextlib.suppress(WriterKilled):
        write_tree(folder, files, Recorded(at, WriterKilled(), for_good=True, swaps=swaps))


@pytest.mark.slow
@pytest.mark.parametrize("before", [None, FIRST], ids=["nothing", "first"])
def test_a_killed_write_leaves_the_old_folder_or_the_new_one(tmp_path: Path, before: Mapping[str, str] | None) -> None:
    for at in range(len(steps(tmp_path, before, SECOND))):
        folder = tmp_path / f"{at}" / "plan"
        folder.parent.mkdir()
        if before:
            write_tree(folder, before)
        killed(folder, SECOND, at)
        assert standing(folder) in ((before or {}), SECOND), at


@SWAPS
@pytest.mark.parametrize("next_one", [SECOND, THIRD, FIRST], ids=["same", "another", "the one before"])
@pytest.mark.parametrize("before", [None, FIRST], ids=["nothing", "first"])
@pytest.mark.slow
def test_what_a_killed_write_leaves_is_cleaned_up_by_the_next_one(
    tmp_path: Path, before: Mapping[str, str] | None, next_one: Mapping[str, str], *, swaps: bool
) -> None:
    mine = {"ten/mine.txt": "mine", "empty/": ""} if before else {}
    for at in range(len(steps(tmp_path, before, SECOND, swaps=swaps)) + 3):
        folder = tmp_path / f"{at}" / "plan"
        folder.parent.mkdir()
        if before:
            write_tree(folder, before)
            (folder / "ten/mine.txt").write_text("mine")
            (folder / "empty").mkdir()
        killed(folder, SECOND, at, swaps=swaps)
        assert folder.exists() or not before or not swaps
        write_tree(folder, next_one)
        assert standing(folder) == dict(sorted({**next_one, **mine}.items())), at
        assert standing(folder.parent).keys() == {f"plan/{name}" for name in standing(folder)}, at


@pytest.mark.full("two kills, one after the other; one at each operation stands for them")
def test_kills_one_after_the_other_are_cleaned_up(tmp_path: Path) -> None:
    count = len(steps(tmp_path, FIRST, SECOND, swaps=False))
    for first in range(count):
        for second in range(0, count, 5):
            folder = tmp_path / f"{first}-{second}" / "plan"
            folder.parent.mkdir()
            write_tree(folder, FIRST)
            killed(folder, SECOND, first, swaps=False)
            killed(folder, THIRD, second, swaps=False)
            write_tree(folder, FIRST)
            assert standing(folder.parent) == {f"plan/{name}": text for name, text in FIRST.items()}, (first, second)


def test_a_file_that_comes_in_at_the_last_moment_is_not_lost(folder: Path) -> None:
    class Late(Disk):
        def swap(self, one: Path, other: Path) -> bool:
            (other / "twenty/mine.txt").write_text("mine")
            return super().swap(one, other)

    write_tree(folder, FIRST)
    write_tree(folder, SECOND, Late())
    assert standing(folder) == dict(sorted({**SECOND, "twenty/mine.txt": "mine"}.items()))


def test_a_file_system_without_hard_links_gets_copies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    write_tree(folder, FIRST)
    (folder / "link").symlink_to("/nowhere")
    write_tree(folder, SECOND)
    assert standing(folder) == dict(sorted({**SECOND, "link": "-> /nowhere"}.items()))


def test_the_access_to_folders_is_kept(folder: Path) -> None:
    write_tree(folder, FIRST)
    (folder / "ten").chmod(0o750)
    write_tree(folder, SECOND)
    assert oct((folder / "ten").stat().st_mode & 0o777) == oct(0o750)


def test_a_file_that_really_cannot_grow_leaves_the_old_tree(folder: Path) -> None:
    """The kernel's own limit on a file's size: a real write that ends half-way."""
    code = """
import resource, signal, sys
from pathlib import Path
from renderer.errors import Problems
from renderer.files.tree import write_tree
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    write_tree(Path(sys.argv[1]), {"index.yaml": "kind: RenderedPlan\\nfiles: [a, b]\\n", "a": "a", "b": "b" * 5000})
except Problems as error:
    print(error.problems[0].message)
"""
    write_tree(folder, FIRST)
    run = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "cannot be written: File too large; the folder is unchanged\n"
    assert standing(folder) == FIRST


# --------------------------------------------------------------------------------------------------- two at one time


@contextlib.contextmanager
def held(folder: Path) -> Iterator[Callable[[], None]]:
    """Another process's lock, and how it lets go."""
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield lambda: fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def test_a_second_render_waits_for_the_first(folder: Path) -> None:
    naps: list[float] = []
    with held(folder.parent) as let_go:

        def sleep(seconds: float) -> None:
            naps.append(seconds)
            if len(naps) == 3:
                let_go()

        write_tree(folder, FIRST, sleep=sleep)
    assert len(naps) == 3
    assert standing(folder) == FIRST


def test_a_file_system_without_locks_is_written_to(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, lock: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    write_tree(folder, FIRST)
    assert standing(folder) == FIRST


def test_a_render_that_does_not_end_is_named_and_left_alone(folder: Path) -> None:
    naps: list[float] = []
    (folder.parent / STAGING / "next").mkdir(parents=True)
    (folder.parent / STAGING / "next/a.yaml").write_text("of the other")
    before = standing(folder.parent)
    busy = f"{folder.parent}: another render is writing to this folder"
    with held(folder.parent):
        for act in (write_tree, check_tree):
            with pytest.raises(Problems, match=f"^{re.escape(busy)}\n") as caught:
                act(folder, FIRST, sleep=naps.append)
            assert caught.value.exit_code is ExitCode.BAD_INPUT
    assert sum(naps) == pytest.approx(10)
    assert standing(folder.parent) == before


def test_those_who_only_look_do_not_hinder_each_other(folder: Path) -> None:
    write_tree(folder, FIRST)
    with held(folder.parent):
        descriptor = os.open(folder.parent, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    assert not check_tree(folder, FIRST)
    os.close(descriptor)


def test_a_folder_above_that_a_failed_render_takes_away_is_recreated(folder: Path) -> None:
    above = folder / "above"
    above.mkdir(parents=True)
    with held(above) as let_go:

        def sleep(_: float) -> None:
            above.rmdir()
            let_go()

        write_tree(above / "plan", FIRST, sleep=sleep)
    assert standing(above / "plan") == FIRST


@pytest.mark.slow
def test_renders_at_the_same_time_leave_one_whole_tree(folder: Path) -> None:
    """Processes that all begin together, again and again: each one's tree holds 30 files of its own text."""
    code = """
import sys
from pathlib import Path
from renderer.files.tree import write_tree
tag, go = sys.argv[2], sys.stdin.readline()
files = {f"m{number}.yaml": f"{tag} {number}\\n" for number in range(30)}
index = "kind: RenderedPlan\\nfiles: [" + ", ".join(files) + "]\\n# " + tag + "\\n"
for _ in range(10):
    write_tree(Path(sys.argv[1]), {**files, "index.yaml": index})
"""
    root = Path(__file__).parents[1]
    command = [sys.executable, "-c", code, str(folder)]
    renders = [
        subprocess.Popen([*command, tag], cwd=root, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for tag in "ABC"
    ]
    for render in renders:
        assert render.stdin
        render.stdin.write("go\n")
        render.stdin.flush()
    ends = [render.communicate()[1] for render in renders]
    assert ends == ["", "", ""]
    assert len({text.split()[0] for name, text in standing(folder).items() if name.startswith("m")}) == 1
    assert len(standing(folder)) == 31


# ----------------------------------------------------------------------------------------------------- any renderings

NAMES = st.sampled_from(["a", "b", "x/a", "x/b", "x/y/a", "z/a"])
TREES = st.dictionaries(NAMES, st.sampled_from(["1", "2"]), max_size=5)


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(TREES, st.integers(0, 40)), min_size=1, max_size=5))
def test_after_any_renderings_and_crashes_the_last_one_stands(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[dict[str, str], int]]
) -> None:
    folder = tmp_path_factory.mktemp("any") / "plan"
    for tree, at in writes:
        killed(folder, rendering(**tree), at, swaps=at % 2 == 0)
    last = rendering(**writes[-1][0])
    write_tree(folder, last)
    assert standing(folder) == last
    assert not check_tree(folder, last)
