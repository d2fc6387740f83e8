"""The journal that `--journal` names, and the warning if it cannot be written."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from renderer.cli.answer import say

if TYPE_CHECKING:
    from reconcile.loop.journal import JournalEntry
    from renderer.redaction import RedactionRules


def journal_at(file: str | None, rules: RedactionRules) -> Callable[[JournalEntry], None]:
    """Keeps nothing where no file is named."""
    from reconcile.loop.journal import Journal, keep_nothing

    return Journal(Path(file), _warn, rules) if file else keep_nothing


def _warn(text: str) -> None:
    say([f"warning: {text}"], sys.stderr)
