"""The journal that `--journal` names. One that cannot be written is refused before the work, and later a warning."""

from __future__ import annotations

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
    journal = Journal(Path(file), _warn, rules)
    try:
        journal.try_to_open()
    except OSError as error:
        message = f"--journal: {file} cannot be written: {error.strerror or error}"
        raise problem("CannotWrite", message, remedy="name a file in a folder that may be written to") from error
    return journal


def _warn(text: str) -> None:
    say([f"warning: {text}"], sys.stderr)
