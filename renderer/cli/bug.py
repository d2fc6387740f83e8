"""Reports a fault of the program itself, and keeps a log of it."""

from __future__ import annotations

import platform
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Sequence
from importlib.metadata import version

from renderer.files.fetch import shown

_CREDENTIAL = re.compile(r"\b(Bearer|Basic) [^'\"\n]+", re.IGNORECASE)
"""Keys whose values are masked to the end of the quotes or of the line: rather a word too much than half a token."""


def tell(error: Exception, argv: Sequence[str]) -> None:
    """The traceback on stderr, and in a file with the details that a bug report needs."""
    trace = _CREDENTIAL.sub(r"\1 REDACTED", "".join(traceback.format_exception(error)))
    sys.stderr.write(trace)
    sys.stderr.write(
        f"this is a bug in {_program()}, not in your files: {type(error).__name__}\n"
        f"    remedy: report it with {_kept(trace, argv)}; leave out of it what must stay secret\n"
    )


def _kept(trace: str, argv: Sequence[str]) -> str:
    try:
        with tempfile.NamedTemporaryFile("w", prefix="upgradeplan-bug-", suffix=".log", delete=False) as file:
            file.write(f"{_program()} on Python {platform.python_version()}, {platform.platform()}\n")
            file.write(f"$ {shlex.join(_without_secrets(argv))}\n{trace}")
    except OSError:
        return "the lines above (no file could be written)"
    return f"the file {file.name}"


def _without_secrets(argv: Sequence[str]) -> list[str]:
    return [shown(argument) if "://" in argument else argument for argument in argv]


def _program() -> str:
    return f"upgradeplan {version('upgradeplan')}"
