"""Turns a wrong command line into a problem like any other, worded as kubectl would instead of click."""

from __future__ import annotations

from collections.abc import Sequence

import click

from renderer.cli.names import name_of
from renderer.errors import Problem, quoted, shortened
from renderer.suggest import closest

_CLOSE = 0.75  # `plan` is 0.73 from `explain`
_OF_KUBECTL = ("-f", "--file", "--filename", "-k", "--kustomize", "-R", "--recursive")
_FILES_HINT = "; files and folders are given as arguments, without an option"


def usage_problem(error: click.ClickException, argv: Sequence[str]) -> Problem:
    """The mistake, and the command that lists what is allowed."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else " ".join([name_of(argv[0]), *argv[1:2]])
    return Problem(reason="Usage", message=_message(error), remedy=f"`{path} --help` lists the {_listed(error)}")


def _listed(error: click.ClickException) -> str:
    return "commands" if isinstance(error, click.NoSuchCommand) else "arguments and options"


def _message(error: click.ClickException) -> str:
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        hint = _FILES_HINT if name in _OF_KUBECTL and _takes_files(error.ctx) else _meant(name, _options(error.ctx))
        return f"unknown option {name}{hint}"
    if isinstance(error, click.NoSuchCommand):
        return f"unknown command {quoted(error.command_name)}{_meant(error.command_name, _commands(error.ctx))}"
    text = shortened(error.format_message().rstrip("."))
    return text[:1].lower() + text[1:]


def _meant(word: str, known: list[str]) -> str:
    close = closest(word, known, _CLOSE)
    return f"; did you mean {close}?" if close else ""


def _takes_files(context: click.Context | None) -> bool:
    parameters = context.command.params if context else []
    return any(parameter.name == "files" for parameter in parameters)


def _options(context: click.Context | None) -> list[str]:
    parameters = context.command.get_params(context) if context else []
    return [name for parameter in parameters for name in parameter.opts if name.startswith("-")]


def _commands(context: click.Context | None) -> list[str]:
    command = context.command if context else None
    return command.list_commands(context) if context and isinstance(command, click.Group) else []
