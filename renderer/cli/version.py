"""`version`: which program this is."""

from __future__ import annotations

from importlib.metadata import version as installed

import click

from renderer.cli.answer import Model, answer, output_option
from renderer.errors import ExitCode
from renderer.model.document_type import VERSION_INFO

DISTRIBUTION = "upgradeplan"


@click.command
@output_option
def version(output: str) -> ExitCode:
    """Print the version."""
    answer(VERSION_INFO, {"version": installed(DISTRIBUTION)}, output, _text)
    return ExitCode.YES


def text_of_version() -> str:
    """`upgradeplan 0.1.0`."""
    return f"{DISTRIBUTION} {installed(DISTRIBUTION)}"


def _text(_: Model) -> list[str]:
    return [text_of_version()]
