"""`version`: which program this is."""

from __future__ import annotations

from importlib.metadata import version as installed

import click

from renderer.cli.answer import answer, output_option, pass_on
from renderer.errors import ExitCode
from renderer.model.document_type import VERSION_INFO
from renderer.resources import commit

DISTRIBUTION = "upgradeplan"


@click.command
@output_option
def version(output: str) -> ExitCode:
    """Print the version.

    A built program also prints its commit, with `-dirty` if the source had uncommitted changes.
    """
    if output == "json":
        built = {"commit": found} if (found := commit()) else {}
        answer(VERSION_INFO, {"version": installed_version(), **built}, output, lambda _: ())
    else:  # it contains no secret, and the redaction rules take time to load
        pass_on([text_of_version()])
    return ExitCode.YES


def installed_version() -> str:
    """`0.1.0`."""
    return installed(DISTRIBUTION)


def text_of_version() -> str:
    """`upgradeplan 0.1.0 (commit 94677f4...)`; of a source tree, the version alone."""
    found = commit()
    return f"{DISTRIBUTION} {installed_version()}" + (f" (commit {found})" if found else "")
