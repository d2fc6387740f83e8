"""What is said of bad input and of a "no": a folder a case, found by globbing.

`expected.txt` is what a terminal shows: the command, the exit status, stdout, stderr. The other files of the folder are
the inputs; `three-node` beside them is the example. After every refusal the folder is as it was before.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from renderer.cli.program import run

ROOT = Path(__file__).resolve().parents[1]
CASES = sorted((ROOT / "tests" / "errors").iterdir())
NOBODY = 65534


@contextlib.contextmanager
def locked_folder(work: Path) -> Iterator[None]:
    """One that may not be listed; root, who may list everything, becomes nobody meanwhile."""
    folder, is_root = work / "locked", os.geteuid() == 0
    folder.chmod(0)
    if is_root:
        shutil.chown(work, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_root:
            os.seteuid(0)
        folder.chmod(0o700)


@contextlib.contextmanager
def small_disk(_: Path) -> Iterator[None]:
    """No file may grow beyond 4 KiB: that happens while the tree is written, and not with its first file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def as_it_is(_: Path) -> Iterator[None]:
    yield


SURROUNDINGS: dict[str, Callable[[Path], contextlib.AbstractContextManager[None]]] = {
    "unreadable-folder": locked_folder,
    "disk-full": small_disk,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_that_is_wrong_is_said(
    case: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    work = tmp_path / "work"
    shutil.copytree(case, work)
    (work / "three-node").symlink_to(ROOT / "examples" / "three-node")
    monkeypatch.chdir(work)
    command = (case / "expected.txt").read_text(encoding="utf-8").splitlines()[0]
    before = contents(work)
    with SURROUNDINGS.get(case.name, as_it_is)(work):
        status = run(shlex.split(command.removeprefix("$ ")))
    shown = capsys.readouterr()
    terminal = f"{command}\nexit {status}\n{shown.out}{shown.err}"
    if request.config.getoption("update_snapshots", default=False):
        (case / "expected.txt").write_text(terminal, encoding="utf-8")
    assert terminal == (case / "expected.txt").read_text(encoding="utf-8")
    assert status in (1, 2)
    assert contents(work) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    """Every file and folder below; None stands for a folder."""
    paths = sorted(path for path in folder.rglob("*") if "three-node" not in path.parts)
    return {str(path.relative_to(folder)): None if path.is_dir() else path.read_bytes() for path in paths}
