"""The table of commands: each is a row here and a module that is imported when it runs.

Other packages bring tables of their own through the entry-point group `upgradeplan.commands` (the value is a mapping
from name to `Row`), so that this package need not know them. Asking for entry points is dear and is done only for a
name that is not in our table, and for `--help`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import click

from renderer.frozen import frozen

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EXTENSIONS = "upgradeplan.commands"


class CommandGroup(StrEnum):
    """The headings of the list of commands, in the order of the work."""

    REVIEW = "Review an upgrade (no cluster needed)"
    RUN = "Run an upgrade"
    INSTALL = "Install the manager in a cluster"
    CONTROL = "Watch and control a running upgrade"
    OTHER = "Other commands"


@frozen
class Row:
    """`target` is `module:object`; `help` is the line that the list of commands shows."""

    target: str
    help: str
    group: CommandGroup = CommandGroup.OTHER


COMMANDS: Mapping[str, Row] = {
    "render": Row(
        target="renderer.cli.render:render",
        help="Render the manifests of a plan for review.",
        group=CommandGroup.REVIEW,
    ),
    "phases": Row(
        target="renderer.cli.phases:phases", help="List the phases of an upgrade.", group=CommandGroup.REVIEW
    ),
    "images": Row(
        target="renderer.cli.images:images", help="List the images that an upgrade uses.", group=CommandGroup.REVIEW
    ),
    "compare": Row(
        target="renderer.cli.compare:compare",
        help="Show what another release or other templates would change.",
        group=CommandGroup.REVIEW,
    ),
    "completion": Row(
        target="renderer.cli.completion:completion", help="Print a shell completion script.", group=CommandGroup.OTHER
    ),
    "version": Row(target="renderer.cli.version:version", help="Print the version.", group=CommandGroup.OTHER),
}


class Commands(click.Group):
    """Finds commands in the tables, without importing those that are only listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_all())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        row = COMMANDS.get(cmd_name) or _extensions().get(cmd_name)
        if row is None:
            return None
        module, _, name = row.target.partition(":")
        command = getattr(import_module(module), name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{row.target} is not a command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in CommandGroup:
            with formatter.section(group):
                formatter.write_dl([(name, row.help) for name, row in _all().items() if row.group is group])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem

        names = (CompletionItem(name, help=row.help) for name, row in _all().items() if name.startswith(incomplete))
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]


def _all() -> Mapping[str, Row]:
    """Ours come first and cannot be replaced."""
    return {**COMMANDS, **{name: row for name, row in _extensions().items() if name not in COMMANDS}}


@cache
def _extensions() -> Mapping[str, Row]:
    """The rows of all tables that installed packages bring, in the order of their names."""
    from importlib.metadata import entry_points

    tables = sorted(entry_points(group=EXTENSIONS), key=lambda point: point.name)
    return {name: row for point in tables for name, row in point.load().items()}


def _show_version(ctx: click.Context, _: click.Parameter, expected: bool) -> None:
    if expected:
        from renderer.cli.version import text_of_version

        click.echo(text_of_version())
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Print the version."
)
def program() -> None:
    """Upgrade Harvester clusters from an UpgradePlan: render it, review it, rehearse it, run it.

    \b
    Examples:
      upgradeplan render examples/three-node        # print the manifests
      upgradeplan rehearse examples/three-node      # run the upgrade on a simulated cluster
      upgradeplan apply upgradeplan.yaml            # run it on the current kubectl context

    Exit status: 0 success; 1 differences, refused or failed; 2 usage or invalid input; 3 the cluster refused the
    request or does not answer; 4 a bug in upgradeplan.
    """
