"""The table of commands: each is a row here and a module that is imported when it runs.

Other packages bring tables of their own through the entry-point group `upgradeplan.commands` (the value is a mapping
from name to `Row`), so that this package need not know them. Asking for entry points is dear and is done only for a
name that is not in our table, and for `--help`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

import click

from renderer.frozen import frozen

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

EXTENSIONS = "upgradeplan.commands"


@frozen
class Row:
    """`target` is `module:object`; `help` is the line that the list of commands shows."""

    target: str
    help: str


COMMANDS: Mapping[str, Row] = {
    "render": Row(target="renderer.cli.render:render", help="Make a plan's manifests, for a reviewer to read."),
    "validate": Row(target="renderer.cli.validate:validate", help="Say all that is wrong, before anything runs."),
    "phases": Row(target="renderer.cli.phases:phases", help="List the phases, or what a phase's templates may see."),
    "images": Row(target="renderer.cli.images:images", help="List the images that the manifests use."),
    "compare": Row(target="renderer.cli.compare:compare", help="Say what another release or template set changes."),
    "completion": Row(target="renderer.cli.completion:completion", help="Print a script that completes commands."),
    "version": Row(target="renderer.cli.version:version", help="Print the version of this program."),
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
            raise TypeError(f"{row.target} is no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, row.help) for name, row in _all().items()])

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


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted:
        from renderer.cli.version import text_of_version

        click.echo(text_of_version())
        ctx.exit()


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Print the version."
)
def program() -> None:
    """Upgrade Harvester clusters from an UpgradePlan: render it, review it, rehearse it, run it.

    Exit status: 0 yes; 1 the answer is no; 2 usage or bad input; 3 the cluster refused or is away; 4 a bug of ours.
    """
