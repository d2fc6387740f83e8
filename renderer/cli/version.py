"""`version`: which program this is."""

from __future__ import annotations

from importlib.metadata import version as installed

import click

from renderer.cli.answer import answer, output_option, pass_on
from renderer.errors import ExitCode
from renderer.model.document_type import VERSION_INFO

DISTRIBUTION = "upgradeplan"


@click.command
@output_option
def version(output: str) -> ExitCode:
    """Print the version."""
    if output == "json":
        answer(VERSION_INFO, {"version": installed(DISTRIBUTION)}, output, lambda _: ())
    else:  # nothing of it can be a secret, and the list of them takes time to read
        pass_on([text_of_version()])
    return ExitCode.YES


def text_of_version() -> str:
    """`upgradeplan 0.1.0`."""
    return f"{DISTRIBUTION} {installed(DISTRIBUTION)}"
