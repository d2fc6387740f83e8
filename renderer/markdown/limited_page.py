"""A page of lines and tables. Where it is too long, tables lose their last rows, and each says how many."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from renderer.frozen import frozen
from renderer.markdown.quoting import legible

LIMIT = 59_000
"""Characters: GitHub takes no comment that is longer than 65,536, and a pipeline adds a line or two."""


@frozen
class Table:
    """Rows of cells that are Markdown already, the most important first; `noun` is one row and many."""

    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    noun: tuple[str, str] = ("row", "rows")


@frozen
class Fold:
    """A diff that is read on demand; `title` is Markdown already. Cut at its end as the rows of a table are."""

    title: str
    lines: Sequence[str]


Block = str | Table | Fold


def page(blocks: Iterable[Block], limit: int = LIMIT) -> list[str]:
    """The lines of the page; no longer than `limit` with their line ends. A table without rows is left out."""
    kept = [block for block in blocks if isinstance(block, str) or _rows_of(block)]
    fixed = sum(len(line) + 1 for block in kept for line in _fixed(block))
    costs = [[len(row) + 1 for row in _rows_of(block)] for block in kept]
    counts = _shares(costs, limit - fixed)
    lines = [line for block, count in zip(kept, counts, strict=True) for line in _lines(block, count)]
    lines = lines[1:] if lines[:1] == [""] else lines
    return lines if sum(len(line) + 1 for line in lines) <= limit else _cut(lines, limit)


def _shares(costs: Sequence[Sequence[int]], room: int) -> list[int]:
    """The number of rows that each block shows: small ones everything, and the large ones share what is left."""
    counts = [0] * len(costs)
    waiting = sorted((index for index, cost in enumerate(costs) if cost), key=lambda index: sum(costs[index]))
    for place, index in enumerate(waiting):
        share = max(room, 0) // (len(waiting) - place)
        counts[index], used = _fitting(costs[index], share)
        room -= used
    return counts


def _fitting(costs: Sequence[int], share: int) -> tuple[int, int]:
    used = 0
    for count, cost in enumerate(costs):
        if used + cost > share:
            return count, used
        used += cost
    return len(costs), used


def _rows_of(block: Block) -> Sequence[str]:
    if isinstance(block, Table):
        return [f"| {' | '.join(row)} |" for row in block.rows]
    return [legible(line) for line in block.lines] if isinstance(block, Fold) else ()


def _fixed(block: Block) -> list[str]:
    """All lines but the rows, with the one that says how many are left out."""
    return list(_lines(block, 0)) if isinstance(block, str) or len(_rows_of(block)) else []


def _lines(block: Block, count: int) -> Iterator[str]:
    if isinstance(block, str):
        yield from ("", block) if block.startswith("#") else (block,)
        return
    rows = _rows_of(block)
    if isinstance(block, Table):
        yield from ("", f"| {' | '.join(block.heading)} |", f"| {' | '.join('---' for _ in block.heading)} |")
        yield from rows[:count]
        yield from _left_out(len(rows) - count, block.noun)
        return
    fence = "`" * max(3, *(len(run) + 1 for row in rows for run in re.findall("`+", row)), 0)
    yield from ("", f"<details><summary>{block.title}</summary>", "", f"{fence}diff")
    yield from rows[:count]
    yield from (fence, *_left_out(len(rows) - count, ("line", "lines")), "</details>")


def _left_out(count: int, noun: tuple[str, str]) -> Iterator[str]:
    if count:
        yield from ("", f"_{count} more {noun[count != 1]} left out; `-o json` has all._")


def _cut(lines: Sequence[str], limit: int) -> list[str]:
    """The first of the lines: there are no tables to cut."""
    last = "_The rest is left out; `-o json` has all._"
    count, _ = _fitting([len(line) + 1 for line in lines], limit - len(last) - 1)
    return [*lines[:count], last]
