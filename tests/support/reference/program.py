"""The pages about the program: its commands, its exit codes, what it prints for machines."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click

from reconcile.cli import COMMANDS as ON_A_CLUSTER
from reconcile.simulator.actors.faults import SIMULATED_OPERATIONS
from renderer.cli.commands import COMMANDS as OFFLINE
from renderer.cli.commands import CommandGroup
from renderer.cli.commands import program as upgradeplan
from renderer.errors import ExitCode
from renderer.model.document_type import ALL, ANSWERS
from support.reference.markdown import code, link, page, section, table
from support.reference.schema_tables import sections
from support.reference.sources import schema

_NAME = "upgradeplan"


def commands() -> str:
    context = click.Context(upgradeplan, info_name=_NAME)
    rows = {**OFFLINE, **ON_A_CLUSTER}
    groups = {group: [name for name in rows if rows[name].group is group] for group in CommandGroup}
    return page(
        "Commands",
        f"`{_NAME} COMMAND --help` prints the same. kubectl finds the program as `kubectl {_NAME}`.",
        table(("Group", "Commands"), ((group, ", ".join(map(link, names))) for group, names in groups.items())),
        *(_command(context, name) for names in groups.values() for name in names),
        section(
            "Operations of a rehearsal", _OPERATIONS, table(("Operation", "On", "Faults", "What it is"), _operations())
        ),
    )


def _command(parent: click.Context, name: str) -> str:
    command = upgradeplan.get_command(parent, name)
    assert command is not None
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    options = table(("Option", "Default", "Meaning"), _options(command, context))
    return section(name, _block(usage), *_paragraphs(command.help or ""), options)


def _block(text: str) -> str:
    return f"```text\n{text}\n```"


def _paragraphs(text: str) -> Iterator[str]:
    """Of a command's help; what click must not wrap is a block."""
    for part in inspect.cleandoc(text).split("\n\n"):
        kept = part.removeprefix("\b\n")
        yield _block(inspect.cleandoc(kept)) if kept != part else " ".join(part.split())


def _options(command: click.Command, context: click.Context) -> Iterator[tuple[str, ...]]:
    for option in command.get_params(context):
        record = option.get_help_record(context)
        if isinstance(option, click.Option) and record and "--help" not in option.opts:
            yield code(record[0]), _default(option), option.help or ""


def _default(option: click.Option) -> str:
    value = option.default
    return code(value) if isinstance(value, (str, int)) and not isinstance(value, bool) and value != "" else ""


_OPERATIONS = (
    "What `--fail`, `--stall`, `--slow` and `--repeat` of `rehearse` take, as `OPERATION [on NAME]`: of a node"
    " or a virtual"
    " machine, or of all without `on`. Jobs of your own phases are operations as well, by their component label."
)


def _operations() -> Iterator[tuple[str, ...]]:
    for act in SIMULATED_OPERATIONS.values():
        yield code(act.name), str(act.on), ", ".join(sorted(act.modes)), act.what


def exit_codes() -> str:
    return page(
        "Exit codes",
        "Every command ends with one of these. 141 means that the reader of the output has gone, as in"
        f" `{_NAME} phases | head -1`.",
        table(("Status", "Means"), ((str(int(status)), _MEANS[status]) for status in ExitCode)),
    )


_MEANS = {
    ExitCode.YES: "Success.",
    ExitCode.NO: "The answer is no: the folder is stale, there are differences, images are missing, the upgrade"
    " has failed"
    " or would fail, the phase forbids it.",
    ExitCode.BAD_INPUT: "Wrong usage or invalid input.",
    ExitCode.CLUSTER: "The cluster has refused the request, or does not answer. Of `preflight` and `verify` also: "
    "nothing blocks, and a check that these inputs should answer could not be evaluated.",
    ExitCode.BUG: "A bug in upgradeplan. The message says how to report it.",
}


def answers() -> str:
    return page(
        "JSON output",
        "What commands print with `-o json`. A refusal is a list of [problems](#problems) with the exit code"
        " that says what"
        " kind it is; [exit codes](exit-codes.md). The schemas are in [schemas](../../schemas).",
        *(_answer(name) for name in _ANSWERS),
    )


_ANSWERS = sorted({"common", *(item.schema for item in ALL if item.api_version == ANSWERS)})


def _answer(name: str) -> str:
    whole = schema(name)
    return section(name, whole["title"] + ".", sections(whole, root=f"{name} document", prefix=f"{name}.", level=3))
