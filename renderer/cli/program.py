"""Runs one command and turns however it ends into an exit status and plain words.

A refusal is a list of problems; anything that is not foreseen is a bug of ours, and only that shows a traceback.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from renderer.errors import ExitCode, Problem, Problems

PROGRAM = "upgradeplan"
KUBECTL_PROGRAM = "kubectl upgradeplan"
COMPLETE_VARIABLE = "_UPGRADEPLAN_COMPLETE"
INTERRUPTED = 130
"""What shells show for a program that Ctrl-C ended (128 + SIGINT)."""
BROKEN_PIPE = 141
"""The same for one whose reader went away (128 + SIGPIPE); `head` is no reason for words."""


def run(argv: Sequence[str]) -> int:
    """`argv` as the shell gives it, the program first. Answers the exit status and raises nothing."""
    try:
        return _run(argv)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    except Exception as error:
        return _end_on(error, argv)


def name_of(program: str) -> str:
    """What the user calls us: kubectl finds a plug-in by the name of its file."""
    return KUBECTL_PROGRAM if Path(program).name.startswith("kubectl-") else PROGRAM


def _run(argv: Sequence[str]) -> int:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # YAML is UTF-8 whatever the locale; file names may be no text at all
            stream.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")
    from renderer.cli.commands import program

    words = list(argv[1:])
    status = program.main(
        words, prog_name=name_of(argv[0]), complete_var=COMPLETE_VARIABLE, standalone_mode=False, obj=tuple(words)
    )
    if sys.stdout:
        sys.stdout.flush()  # a full disk or a closed pipe is told here, not by the interpreter's own last words
    return int(status or 0)


def _end_on(error: Exception, argv: Sequence[str]) -> int:
    import click

    if isinstance(error, click.Abort):
        sys.stderr.write("interrupted\n")
        return INTERRUPTED
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(f"{error.format_message()}\n")
        return ExitCode.BAD_INPUT
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        _drop_output()
        return BROKEN_PIPE
    refusal = _refusal(error)
    if refusal is None:
        from renderer.cli.bug import tell

        tell(error, argv)
        return ExitCode.BUG
    return _tell(refusal, argv)


def _refusal(error: Exception) -> Problems | None:
    """The error as problems; None for a bug of ours."""
    import click

    if isinstance(error, Problems):
        return error
    if isinstance(error, click.ClickException):
        from renderer.cli.usage import usage_problem

        return Problems([usage_problem(error)])
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
        _drop_output()
        message = f"cannot be written: {error.strerror}"
        remedy = "make room, or send the output elsewhere"
        return Problems([Problem(reason="CannotWrite", message=message, file="<stdout>", remedy=remedy)])
    return None


def _tell(refusal: Problems, argv: Sequence[str]) -> int:
    from renderer.cli.answer import show_problems, wants_json

    try:
        show_problems(refusal, as_json=wants_json(argv))
        sys.stdout.flush()
    except OSError:
        _drop_output()
    return refusal.exit_code


def _drop_output() -> None:
    """Nobody reads any more: what is still in the buffer must not make the interpreter complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
