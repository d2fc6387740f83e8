"""On a system without `fcntl`, such as Windows: what writes no folder works, and what does is refused in words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.rendered_plans import ROOT

PROGRAM = "import sys; sys.modules['fcntl'] = None; from renderer.cli.program import run; sys.exit(run(sys.argv))"
EXAMPLE = str(ROOT / "examples" / "three-node")


def _run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *words]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("words", [("render", EXAMPLE), ("validate", EXAMPLE), ("phases",), ("images", EXAMPLE)])
def test_what_writes_no_folder_works(words: tuple[str, ...]) -> None:
    done = _run(*words)
    assert (done.returncode, done.stdout != "") == (0, True), done.stderr


def test_a_folder_is_refused_in_words(tmp_path: Path) -> None:
    done = _run("render", EXAMPLE, "--output-dir", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "has no file locks" in done.stderr
    assert "WSL2" in done.stderr
    assert list(tmp_path.iterdir()) == []
