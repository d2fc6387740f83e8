"""The journal that `--journal` names. One that cannot be written is refused before the work, and later a warning."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from renderer.cli.answer import say
from renderer.errors import problem

if TYPE_CHECKING:
    from reconcile.loop.journal import JournalEntry
    from renderer.redaction import RedactionRules


def journal_at(file: str | None, rules: RedactionRules) -> Callable[[JournalEntry], None]:
    """Keeps nothing where no file is named. Raises `Problems` for one that cannot be written."""
    from reconcile.loop.journal import Journal, keep_nothing

    if not file:
        return keep_nothing
    try:
        try_to_open(file)
    except OSError as error:
        message = f"--journal: {file} cannot be written: {error.strerror or error}"
        raise problem("CannotWrite", message, remedy="name a file in a folder that may be written to") from error
    return Journal(Path(file), _warn, rules)


def try_to_open(file: str) -> None:
    """Raises `OSError` if the file cannot be written, also for a pipe that nobody reads, and leaves it as it is, or
    empty where there was none."""
    without_waiting = getattr(os, "O_NONBLOCK", 0)  # Windows has none
    os.close(os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | without_waiting, 0o666))


def _warn(text: str) -> None:
    say([f"warning: {text}"], sys.stderr)
