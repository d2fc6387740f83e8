"""Problems as a pull request shows them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from renderer.errors import Problem
from renderer.markdown.limited_page import Block, Table
from renderer.markdown.quoting import cell, code


def problem_blocks(problems: Iterable[Problem]) -> Iterator[Block]:
    found = [*problems]
    yield f"### Refused: {len(found)} problem{'' if len(found) == 1 else 's'}"
    rows = [(code(_place(item)), cell(item.message), cell(item.remedy or "")) for item in found]
    yield Table(heading=("where", "problem", "remedy"), rows=rows, noun=("problem", "problems"))


def _place(problem: Problem) -> str:
    line = f":{problem.line}" if problem.line else ""
    return " ".join(part for part in (f"{problem.file}{line}" if problem.file else "", problem.field or "") if part)
