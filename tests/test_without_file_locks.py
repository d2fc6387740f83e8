"""Rendering works on a system whose folders have no locks and whose files have no owner, such as Windows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.rendered_plans import ROOT

PROGRAM = """
import os, sys
sys.modules["fcntl"] = None
del os.getuid, os.O_DIRECTORY
from renderer.cli.program import run
sys.exit(run(sys.argv))
"""
"""Our commands in a Python that lacks what Python lacks on Windows."""
EXAMPLE = str(ROOT / "examples" / "three-node")


def _run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, *words]
    return subprocess.run(
        command, cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("words", [("render", EXAMPLE), ("validate", EXAMPLE), ("phases",), ("images", EXAMPLE)])
def test_a_command_that_writes_no_folder_works(words: tuple[str, ...]) -> None:
    done = _run(*words)
    assert (done.returncode, done.stdout != "") == (0, True), done.stderr


@pytest.mark.slow
def test_a_folder_is_written_and_checked_without_a_lock_and_without_a_cache(tmp_path: Path) -> None:
    words = ("render", EXAMPLE, "--output-dir", str(tmp_path / "out"))
    for options in ((), ("--check",)):
        done = _run(*words, *options, XDG_CACHE_HOME=str(tmp_path / "cache"))
        assert (done.returncode, done.stderr) == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
