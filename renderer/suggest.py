"""Suggests what somebody probably meant: the known word that is close to an unknown one. Pure."""

from __future__ import annotations

from collections.abc import Iterable


def closest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known word that is closest, in upper or lower case; None if no word is close."""
    from difflib import get_close_matches  # only when something is wrong

    close = get_close_matches(word.lower(), spellings := {name.lower(): name for name in known}, n=1, cutoff=cutoff)
    return spellings[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message: `; did you mean 'harvester'?`, or nothing."""
    close = closest(word, known)
    return f"; did you mean {close!r}?" if close else ""
