"""Inputs from the field, laid over an example: what each command must answer. A case is a file.

The comment on top: `over` is the example, three-node unless it is given; `run` is a command and `exit` its exit status,
in the same order; `says` and `never` are texts that all of its output has and has not; `full` is why a case is left out
of short runs, and what stands for it. An object of the case takes the place of the example's of the same name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.rehearsals import ROOT

from renderer.cli.program import run
from renderer.source_document import PLAN_KIND, Piece, pieces_of
from renderer.yaml_io import parse

pytestmark = pytest.mark.slow

CASES = sorted((ROOT / "tests" / "cases" / "inputs").glob("*.yaml"))


def told(path: Path, key: str) -> list[str]:
    return re.findall(rf"^# {key}: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)


def objects(path: Path) -> Iterator[Any]:
    for document in parse(path.read_text(encoding="utf-8"), path.name):
        yield from (piece.source.body for piece in pieces_of(document, None) if isinstance(piece, Piece))


def identity(body: Any) -> tuple[Any, ...]:
    """There is one plan, and one release, whatever its name."""
    if body.get("kind") in (None, PLAN_KIND):
        return (body.get("kind"),)
    metadata = body.get("metadata", {})
    return body["apiVersion"], body["kind"], metadata.get("namespace"), metadata.get("name")


@cache
def objects_of(example: str) -> Sequence[Any]:
    return [body for file in sorted((ROOT / "examples" / example).glob("*.yaml")) for body in objects(file)]


def lay_over(case: Path, folder: Path) -> None:
    given = {identity(body) for body in objects(case)}
    (example,) = told(case, "over") or ["three-node"]
    for number, body in enumerate(body for body in objects_of(example) if identity(body) not in given):
        (folder / f"{number:03}.json").write_text(json.dumps(body), encoding="utf-8")
    (folder / "case.yaml").write_text(case.read_text(encoding="utf-8"), encoding="utf-8")


def cases() -> Iterator[Any]:
    for case in CASES:
        plays = any("rehearse" in command for command in told(case, "run"))
        marks = [pytest.mark.full(why) for why in told(case, "full")] + [pytest.mark.slow] * plays
        yield pytest.param(case, id=case.stem, marks=marks)


@pytest.mark.parametrize("case", list(cases()))
def test_the_answer_is_the_right_one(case: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lay_over(case, tmp_path)
    assert told(case, "source")
    for command, status in zip(told(case, "run"), told(case, "exit"), strict=True):
        assert run(["upgradeplan", *command.split(), str(tmp_path)]) == int(status), capsys.readouterr()
        shown = capsys.readouterr()
        text = shown.out + shown.err
        assert [part for part in told(case, "says") if part not in text] == [], text
        assert [part for part in told(case, "never") if part in text] == [], text
