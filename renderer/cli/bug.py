"""Reports a fault of the program itself, and keeps a log of it."""

from __future__ import annotations

import platform
import shlex
import sys
import tempfile
import traceback
from collections.abc import Sequence

from renderer.cli.answer import redactor
from renderer.cli.version import text_of_version


def report_bug(error: Exception, argv: Sequence[str]) -> None:
    """The traceback on stderr, and in a file with the details that a bug report needs."""
    trace = redactor().text("".join(traceback.format_exception(error)))
    sys.stderr.write(trace)
    sys.stderr.write(
        f"this is a bug in {text_of_version()}, not in your files: {type(error).__name__}\n"
        f"    remedy: report it with {_kept(trace, argv)}; leave out of it what must stay secret\n"
    )


def _kept(trace: str, argv: Sequence[str]) -> str:
    try:
        with tempfile.NamedTemporaryFile("w", prefix="upgradeplan-bug-", suffix=".log", delete=False) as file:
            file.write(f"{text_of_version()} on Python {platform.python_version()}, {platform.platform()}\n")
            file.write(f"$ {shlex.join(_without_secrets(argv))}\n{trace}")
    except OSError:
        return "the lines above (no file could be written)"
    return f"the file {file.name}"


def _without_secrets(argv: Sequence[str]) -> list[str]:
    return list(map(redactor().argument, argv))
