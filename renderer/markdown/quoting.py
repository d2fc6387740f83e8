"""Quotes text in Markdown: the result contains no markup, no mention, and no end of a cell or line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

LONGEST = 400
"""Characters of a text that a cell shows."""
_LONGEST_CELL = 4_000
_MARKUP = str.maketrans(
    {"\\": "&#92;", "`": "&#96;", "[": "&#91;", "|": "\\|", "*": "&#42;", "_": "&#95;", "~": "&#126;", "@": "@\u200b"}
)


def cell(text: str, longest: int = LONGEST) -> str:
    """A text on one line, cut where it is too long."""
    line = " ".join(text.split())
    shown = line if len(line) <= longest else f"{line[:longest]}…"
    return escape(legible(shown)).translate(_MARKUP)


def code(text: str, longest: int = LONGEST) -> str:
    """The same in the type of code. HTML, since a backtick in the text would end Markdown's own."""
    return f"<code>{cell(text, longest)}</code>" if text.strip() else ""


def cell_lines(texts: Iterable[str]) -> str:
    """Several texts in one cell, as many as fit; and how many more there are."""
    shown: list[str] = []
    rest, room = [*map(cell, texts)], _LONGEST_CELL
    while rest and (not shown or len(rest[0]) <= room):
        shown.append(rest.pop(0))
        room -= len(shown[-1])
    return "<br>".join([*shown, *([f"and {len(rest)} more"] if rest else [])])


def codes(texts: Sequence[str]) -> str:
    return ", ".join(map(code, texts))


def legible(text: str) -> str:
    """The text without characters that steer, or that XML cannot hold."""
    return "".join(character if character.isprintable() or character == "\n" else "\ufffd" for character in text)
