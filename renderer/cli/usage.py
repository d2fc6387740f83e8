"""A wrong command line as a problem like any other, in this program's words instead of click's."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import click

from renderer.cli.names import name_of
from renderer.errors import Problem


def usage_problem(error: click.ClickException, argv: Sequence[str]) -> Problem:
    """What is wrong, and the command that shows what would be right."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else " ".join([name_of(argv[0]), *argv[1:2]])
    return Problem(reason="Usage", message=_message(error), remedy=f"`{path} --help` lists what it takes")


def _message(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        return f"there is no option {error.option_name}{_meant(error.option_name, _options(error.ctx))}"
    if isinstance(error, click.NoSuchCommand):
        return f"there is no command {error.command_name!r}{_meant(error.command_name, _commands(error.ctx))}"
    text = error.format_message().rstrip(".")
    return text[:1].lower() + text[1:]


def _meant(word: str, known: list[str]) -> str:
    close = get_close_matches(word, known, n=1)
    return f"; did you mean {close[0]}?" if close else ""


def _options(context: click.Context | None) -> list[str]:
    parameters = context.command.get_params(context) if context else []
    return [name for parameter in parameters for name in parameter.opts if name.startswith("-")]


def _commands(context: click.Context | None) -> list[str]:
    command = context.command if context else None
    return command.list_commands(context) if context and isinstance(command, click.Group) else []
