"""Questions before anything is changed. Ending one changes nothing, and is not an error of the program."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from renderer.errors import ExitCode, problem

Answer = TypeVar("Answer")


def typed(question: str, default: str | None = None) -> str:
    """The text that is typed; `default` stands for an empty one. Raises `Problems` at the end of the input,
    KeyboardInterrupt at Ctrl-C; so does `agreed`."""
    return str(_answer(lambda: click.prompt(question, default=default, show_default=bool(default), err=True)))


def agreed(question: str) -> bool:
    return _answer(lambda: click.confirm(question, default=False, err=True))


def _answer(ask: Callable[[], Answer]) -> Answer:
    try:
        return ask()
    except click.Abort as end:
        click.echo("\nnothing was changed", err=True)
        if isinstance(end.__context__, KeyboardInterrupt):  # click makes one of both
            raise KeyboardInterrupt from None
        message = "the input ended before there was an answer"
        remedy = "answer the question, or give the option that answers it"
        raise problem("NotConfirmed", message, remedy=remedy, exit_code=ExitCode.NO) from None
