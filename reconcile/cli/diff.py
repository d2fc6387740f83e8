"""`diff`: what a phase would change on the live cluster, by dry run, before its first write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from reconcile.cli.candidates import plan_names
from reconcile.cli.connect import Target, cluster_options
from renderer.cli.answer import Model, answer, output_option, say
from renderer.cli.candidates import phase_names
from renderer.cli.input_options import InputOptions
from renderer.errors import ExitCode
from renderer.model.document_type import DIFF_REPORT

if TYPE_CHECKING:
    from reconcile.cli.live import Live
    from reconcile.diff.build import Tried
    from reconcile.diff.entry import Diff
    from renderer.documents import Inputs


@click.command
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE|FOLDER]...")
@click.option(
    "--plan",
    "name",
    metavar="NAME",
    shell_complete=plan_names,
    help="The plan in the cluster. Defaults to the one that has not ended.",
)
@click.option(
    "--release",
    type=click.Path(),
    metavar="FILE|URL|ISO",
    help="The release's harvester-release.yaml, its URL, or the ISO image that contains it.",
)
@click.option(
    "--phase",
    "phases",
    multiple=True,
    metavar="NAME",
    shell_complete=phase_names,
    help="Compare this phase only. Repeatable.",
)
@cluster_options
@output_option
def diff(
    files: tuple[str, ...], name: str | None, release: str | None, phases: tuple[str, ...], target: Target, output: str
) -> ExitCode:
    """Show what each phase would change on the cluster.

    \b
    Examples:
      upgradeplan diff
      upgradeplan diff upgradeplan.yaml --release harvester-release.yaml --phase ImagePreload

    Applies every manifest as a server-side dry run; nothing is changed. A plan that is not yet in the cluster is given
    as FILE. Exits 0 if there are no differences, 1 if there are, 3 if the cluster refuses a manifest.
    """
    from reconcile.cli.live import live_of

    live = live_of(target, inputs_of(files, release, name), name)
    expected = phases or tuple(item.phase.name for item in live.rendered.phases)
    diffs = _diffs(live, expected)
    if output == "json":
        from reconcile.diff.document import to_json

        answer(DIFF_REPORT, to_json(live.rendered.plan, diffs), output, _no_text)
    else:
        say(_text(diffs), end="")
    return max((item.exit_code() for item in diffs), default=ExitCode.YES)


def inputs_of(files: tuple[str, ...], release: str | None, name: str | None) -> Inputs | None:
    """The inputs that were given as files, and of several plans that of the name; None where nothing was. Raises
    `Problems`."""
    from renderer.cli.input_options import read

    if not files and not release:
        return None
    return read(InputOptions(files=files, release=release, name=name))[0]


def _diffs(live: Live, names: Sequence[str]) -> tuple[Diff, ...]:
    from reconcile.cli.live import diff_rules
    from reconcile.diff.build import diffs_of

    tried = [_tried(live, name) for name in names]
    return diffs_of(live.rendered.plan, tried, rules=diff_rules(live.parts), schemas=live.parts.schemas)


def _tried(live: Live, name: str) -> Tried:
    from reconcile.act.dry_run import try_phase
    from reconcile.diff.build import Tried, waits_of
    from reconcile.status.plan_body import status_of

    phase = live.phase(name)
    status = status_of(live.plan)
    recorded = {made.ref: made.digest for _, record in status.records_of(name) for made in record.objects}
    trials = try_phase(live.writer(), phase, recorded=recorded, loans=status.loans)
    return Tried(phase=phase, trials=trials, waits_for=waits_of(phase))


def _text(diffs: Sequence[Diff]) -> Iterator[str]:
    from reconcile.diff.text import details, table

    for item in diffs:
        yield f"{table(item)}\n"
    for item in diffs:
        if said := details(item):
            yield f"{said}\n"


def _no_text(_model: Model) -> Iterator[str]:
    return iter(())
