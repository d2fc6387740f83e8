"""What the documents show is what comes: commands run, links lead somewhere, make targets exist.

In a fenced block of kind `console`, lines that begin with `$ ` are commands, run in a folder with the examples, the
templates and the tests in it; all else is their output. `pytest --snapshot-update tests/test_readme.py` writes the
output again.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from controlplane.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("examples", "docs")
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(path for name in FOLDERS for path in (ROOT / name).rglob("*.md")),
        ROOT / "tests/cases/README.md",
    ]
)
CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", re.MULTILINE | re.DOTALL)
PAGES = pytest.mark.full("commands that pages of the docs show; those of README and CONTRIBUTING stand for them")
LINK = re.compile(r"\[[^\]]*\]\(([^)]+)\)")
CODE = re.compile(r"`[^`\n]*`")
NAMED = re.compile(r'<a id="([^"]+)">')
NAMED_FILE = re.compile(
    r"`((?:renderer|reconcile|tests|templates|schemas|examples|\w+)/[\w./-]*\.(?:py|json|yaml|md))`"
)
NAMED_FOLDER = re.compile(r"`((?:renderer|reconcile|tests|templates|schemas|examples|docs)/(?:[a-z_][\w.-]*/)*)`")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
TARGET = re.compile(r"\bmake ([a-z][a-z-]+)(?=[`\n ]*(?:`|#|$))", re.MULTILINE)


def _name(document: Path) -> str:
    return document.relative_to(ROOT).as_posix()


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """A folder as the reader has it, and the program under its name."""
    for name in ("examples", "templates"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    program = tmp_path / ".bin" / "upgradeplan"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m renderer.cli "$@"\n')
    program.chmod(0o755)
    return tmp_path


def shown() -> Iterator[Any]:
    for path in DOCUMENTS:
        if CONSOLE.search(path.read_text()):
            yield pytest.param(path, id=_name(path), marks=[] if path.parent == ROOT else [PAGES])


@pytest.mark.slow
@pytest.mark.parametrize("document", list(shown()))
def test_what_is_shown_is_what_comes(document: Path, desk: Path, pytestconfig: pytest.Config) -> None:
    written = document.read_text()
    run = CONSOLE.sub(lambda block: "".join(_transcript(block[0], desk)), written)
    if pytestconfig.option.update_snapshots:
        document.write_text(run)
    else:
        assert run == written, (
            f"{_difference(written, run)}\nmend it with pytest --snapshot-update tests/test_readme.py"
        )


def _difference(written: str, run: str) -> str:
    return "\n".join(unified_diff(written.splitlines(), run.splitlines(), "shown", "comes", n=1, lineterm=""))


def _transcript(block: str, desk: Path) -> Iterator[str]:
    commands = [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    assert commands, f"a console block without a command:\n{block}"
    for command in commands:
        yield f"$ {command}\n{_output(command, desk)}"


def _output(command: str, desk: Path) -> str:
    """As a reader without a terminal sees it, with the errors among the rest."""
    environment = {
        **os.environ,
        "PATH": f"{desk / '.bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "LC_ALL": "C.UTF-8",
        "COLUMNS": "100",
    }
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=desk,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}"
    return done.stdout


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_links_lead_somewhere(document: Path) -> None:
    broken = [link for link in LINK.findall(CODE.sub("", document.read_text())) if not _leads_somewhere(link, document)]
    assert broken == []


def _leads_somewhere(link: str, document: Path) -> bool:
    path, _, anchor = link.partition("#")
    target = document.parent / path if path else document
    if not anchor:
        return target.exists()
    if not target.is_file():
        return False
    text = target.read_text()
    return anchor in {*map(_anchor, HEADING.findall(text)), *NAMED.findall(text)}


def _anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_make_targets_exist(document: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    there = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    assert set(TARGET.findall(document.read_text())) <= there


@pytest.mark.parametrize("document", DOCUMENTS, ids=_name)
def test_files_that_are_named_exist(document: Path) -> None:
    """Paths of code and data between backquotes, from the root or below a package, and folders from the root."""
    text = CONSOLE.sub("", document.read_text())
    named = [*NAMED_FILE.findall(text), *NAMED_FOLDER.findall(text)]
    roots = (ROOT, ROOT / "reconcile", ROOT / "renderer", document.parent)
    assert [path for path in named if not any((root / path).exists() for root in roots)] == []
