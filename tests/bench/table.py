"""The lines of the table, and their text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """`text` says the limit, `held` whether it was kept to."""

    text: str
    held: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One thing measured. Times in seconds, memory in MiB, `ratio` to the peer that the bench names."""

    what: str
    seconds: float | None = None
    quickest: float | None = None
    slowest: float | None = None
    cpu: float | None = None
    mib: float | None = None
    ratio: float | None = None
    budgets: tuple[Budget, ...] = ()

    @property
    def held(self) -> bool:
        return all(budget.held for budget in self.budgets)


HEADER = ("", "median ms", "from", "to", "CPU ms", "MiB", "ratio", "budget")


def as_text(lines: Iterable[Line]) -> str:
    """Columns of equal width, figures to the right."""
    rows = [HEADER, *(_row(line) for line in lines)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    return "\n".join(_aligned(row, widths) for row in rows)


def _row(line: Line) -> tuple[str, ...]:
    return (
        line.what,
        _ms(line.seconds),
        _ms(line.quickest),
        _ms(line.slowest),
        _ms(line.cpu),
        "" if line.mib is None else f"{line.mib:.1f}",
        "" if line.ratio is None else f"{line.ratio:.2f}",
        "; ".join(f"{budget.text} {'held' if budget.held else 'MISSED'}" for budget in line.budgets),
    )


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1000:,.1f}"


def _aligned(row: tuple[str, ...], widths: list[int]) -> str:
    first, *figures, last = (cell for cell in row)
    middle = (cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=False))
    return "  ".join((first.ljust(widths[0]), *middle, last)).rstrip()
