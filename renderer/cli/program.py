"""Runs one command, and turns its result or its error into an exit status and a message.

A refusal is a list of problems; any other exception is a bug in this program, and only that shows a traceback.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from renderer.cli.names import COMPLETE_VARIABLE, name_of
from renderer.errors import ExitCode, Problem, Problems

BROKEN_PIPE = 141
"""The exit status that shells show for a program whose reader went away (128 + SIGPIPE); `head` is no reason for
words."""


GARBAGE = 50_000
"""Objects that may gather before Python looks for garbage. At its 700 the looking costs a tenth of a short run, and
half of the reading of a large cluster."""


def run(argv: Sequence[str]) -> int:
    """`argv` as the shell gives it, the program first. Answers the exit status; only Ctrl-C is raised."""
    try:
        return _run(argv)
    except Exception as error:
        return _end_on(error, argv)


def _run(argv: Sequence[str]) -> int:
    _ready_streams()
    gc.set_threshold(GARBAGE)
    if COMPLETE_VARIABLE in os.environ:
        from renderer.cli.completion import answer_shell

        return answer_shell(name_of(argv[0]), os.environ[COMPLETE_VARIABLE])
    status = _invoke(argv)
    sys.stdout.flush()  # a full disk or a closed pipe is reported here, not by the interpreter's own last words
    return status


def _invoke(argv: Sequence[str]) -> int:
    """Not click's own `main`: that one has exit statuses of its own."""
    from click.exceptions import Exit

    from renderer.cli.answer import warn, warned
    from renderer.cli.commands import program

    words = list(argv[1:])
    try:
        with program.make_context(name_of(argv[0]), list(words), obj=tuple(words)) as context:
            try:
                return int(program.invoke(context) or 0)
            except Exit:
                raise
            except Exception as error:  # here, since the command's own list of what is secret ends with its context
                if isinstance(error, Problems):
                    warn(error.warnings)
                    error.warnings = tuple(warned())
                return _end_on(error, argv)
    except Exit as end:  # `--help`
        return end.exit_code


def _ready_streams() -> None:
    """YAML is UTF-8 whatever the locale, and the name of a file may be no text at all."""
    if not (sys.stdout and sys.stderr):  # closed by the caller, which then expects no answer
        nothing = Path(os.devnull).open("w")  # noqa: SIM115 - for as long as the program runs
        sys.stdout, sys.stderr = sys.stdout or nothing, sys.stderr or nothing
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="surrogateescape", newline="\n")


def _end_on(error: Exception, argv: Sequence[str]) -> int:
    import click

    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        sys.stderr.write(f"{error.format_message()}\n")
        return ExitCode.BAD_INPUT
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        _drop_output()
        return BROKEN_PIPE
    refusal = _refusal(error, argv)
    if refusal is None:
        from renderer.cli.bug import report_bug

        report_bug(error, argv)
        return ExitCode.BUG
    return _report(refusal, None if isinstance(error, OSError) else argv)


def _refusal(error: Exception, argv: Sequence[str]) -> Problems | None:
    """The error as problems; None for a bug in this program."""
    import click

    if isinstance(error, Problems):
        return error
    if isinstance(error, click.ClickException):
        from renderer.cli.usage import usage_problem

        return Problems([usage_problem(error, argv)])
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG):
        _drop_output()
        message = f"cannot be written: {error.strerror}"
        remedy = "free disk space, or redirect the output"
        return Problems([Problem(reason="CannotWrite", message=message, file="<stdout>", remedy=remedy)])
    return None


def _report(refusal: Problems, argv: Sequence[str] | None) -> int:
    """Without `argv` in words, on stderr: stdout takes no more."""
    from renderer.cli.answer import show_problems, wanted_output

    try:
        show_problems(refusal, wanted_output(argv) if argv else "text")
        sys.stdout.flush()
    except OSError:
        _drop_output()
    return refusal.exit_code


def _drop_output() -> None:
    """Nobody reads any more: what is still in the buffer must not make the interpreter complain at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
