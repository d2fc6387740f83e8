"""Progress while work is long: one view, rewritten in place, on a terminal; a line for whatever is new without one.

What is shown comes from files and from the cluster, so it is made plain first: it cannot steer the terminal.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from renderer.cli.answer import plain, redactor, say

if TYPE_CHECKING:
    from rich.live import Live

    from reconcile.report.progress_view import Room, ShownLine

    View = Callable[[Room], Sequence[ShownLine]]


def newest_lines(lines: Sequence[str]) -> View:
    """A view of lines that come one after the other: of more than there is room for, the last."""
    from reconcile.report.progress_view import ShownLine

    return lambda room: [ShownLine(text=text) for text in lines[-room[1] :]]


class Screen:
    """Open as a context; the last view stays when it closes. Lines printed with `say` appear above the view."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._live: Live | None = None
        self._news: tuple[str, ...] = ()

    def __enter__(self) -> Self:
        if self._stream.isatty() and os.environ.get("TERM") != "dumb":
            self._live = _live_on(self._stream)
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, view: View, news: Sequence[str], at: str = "") -> None:
        """`view` is all there is to see now, for a terminal: what it has room for. `news` is written elsewhere unless
        it was the last; `at`, the time, is put before its first line. Neither that nor how long a wait has lasted is
        news."""
        if self._live is not None:
            from rich.text import Text

            size = self._live.console.size
            lines = view((size.width, size.height - 1))
            text = Text("\n").join(
                Text(plain(redactor().text(line.text)), style=line.tone.value or "") for line in lines
            )
            self._live.update(text, refresh=True)
        elif news and _without_ages(news) != self._news:
            say([f"{at}{plain(news[0])}", *map(plain, news[1:])], self._stream)
            self._stream.flush()
        self._news = _without_ages(news)


def _without_ages(news: Sequence[str]) -> tuple[str, ...]:
    return tuple(re.sub(r" \(for [\w ]+\)", "", line) for line in news)


def _live_on(stream: TextIO) -> Live:
    from rich.console import Console
    from rich.live import Live

    return Live(console=Console(file=stream, markup=False, highlight=False, emoji=False), auto_refresh=False)
