"""`rehearse`: the whole upgrade, played on the user's own objects, with whatever shall go wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from reconcile.cli.journal import journal_at
from reconcile.cli.screen import Screen
from renderer.cli.answer import answer, output_option, warn
from renderer.cli.input_options import FILE, InputOptions, input_options, read
from renderer.errors import ExitCode, problem
from renderer.model.document_type import REHEARSAL_REPORT
from renderer.model.ref import Body, ref_of

if TYPE_CHECKING:
    from reconcile.loop.reconciler import Round
    from reconcile.simulator.actors.fault_options import KnownTargets
    from reconcile.simulator.actors.operations import SimulatedOperation
    from reconcile.simulator.rehearsal.rehearsal import Rehearsal, RehearsalResult
    from renderer.documents import Inputs

_START = datetime(2026, 1, 1, tzinfo=UTC)
"""Any day will do: what is told are times since the start, and certificates of a facts document end later."""


class _Rehearse(click.Command):
    """Lists the simulated operations in its help; the table is imported for that only."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from reconcile.simulator.actors.operations import SIMULATED_OPERATIONS

        with formatter.section("Operations"):
            formatter.write_dl([(item.name, _described(item)) for item in SIMULATED_OPERATIONS.values()])


def _described(operation: SimulatedOperation) -> str:
    on = f", on NAME of a {operation.on}" if operation.on else ""
    return f"{operation.what}{on} ({', '.join(sorted(operation.troubles))})"


@click.command(cls=_Rehearse)
@input_options
@click.option(
    "--fail", multiple=True, metavar="OPERATION [on NAME]", help="Make the operation fail, e.g. 'pre-drain on node-2'."
)
@click.option("--stall", multiple=True, metavar="OPERATION [on NAME]", help="Make the operation hang.")
@click.option(
    "--slow", multiple=True, metavar="OPERATION [on NAME]=DURATION", help="Make the operation take this long."
)
@click.option("--repeat", multiple=True, metavar="OPERATION [on NAME]", help="Make the operation run twice.")
@click.option(
    "--away", multiple=True, metavar="DURATION [at OPERATION]", help="Make the API server unavailable for this long."
)
@click.option(
    "--resume-after", default="10m", show_default=True, metavar="DURATION", help="Release a held node after this time."
)
@click.option("--journal", type=FILE, metavar="FILE", help="Record every decision in FILE, for `explain --replay`.")
@click.option("--quiet", "-q", is_flag=True, help="Print only the report, no progress.")
@output_option
def rehearse(
    given: InputOptions,
    fail: tuple[str, ...],
    stall: tuple[str, ...],
    slow: tuple[str, ...],
    repeat: tuple[str, ...],
    away: tuple[str, ...],
    resume_after: str,
    journal: str | None,
    quiet: bool,
    output: str,
) -> ExitCode:
    """Run the whole upgrade on a simulated cluster.

    \b
    Examples:
      upgradeplan rehearse examples/three-node
      upgradeplan rehearse examples/three-node --fail 'pre-drain on charlie-2-tink-system'
      upgradeplan rehearse examples/three-node --slow image-import=3h --away '10m at cluster-upgrade'

    Runs the production reconcile loop against an in-memory cluster seeded with your objects; Harvester, Rancher and
    the nodes are simulated, and time is virtual. Exits 1 if the upgrade would not succeed.
    """
    from reconcile.simulator.actors.fault_options import FaultOptions, duration_of, fault_plan_of
    from reconcile.simulator.rehearsal.rehearsal import prepare
    from reconcile.simulator.rehearsal.report import report_lines, report_of
    from renderer.assemble import open_template_set
    from renderer.files.code import CodeCache

    inputs, tree = read(given)
    code = CodeCache()
    template_set = open_template_set(tree, code=code)
    warn(template_set.catalog.warnings)
    pause = duration_of(resume_after)
    if pause is None:
        raise problem("InvalidDuration", f"--resume-after: {resume_after!r} is no duration", remedy="write 10m or 2h")
    options = FaultOptions(fail=fail, stall=stall, slow=slow, repeat=repeat, away=away)
    rehearsal = prepare(
        inputs,
        template_set,
        start=_START,
        faults=fault_plan_of(options, _cast(inputs)),
        resume_after=pause,
        journal=journal_at(journal),
    )
    rehearsed = _played(rehearsal, quiet or output == "json")
    code.save()
    answer(REHEARSAL_REPORT, report_of(rehearsed, rehearsal.name), output, report_lines)
    return ExitCode.YES if rehearsed.succeeded else ExitCode.NO


def _played(rehearsal: Rehearsal, quiet: bool) -> RehearsalResult:
    if quiet:
        return rehearsal.play(_silent)
    with Screen(sys.stderr) as screen:
        return rehearsal.play(_live(rehearsal, screen))


def _silent(done: Round) -> None:
    """Says nothing."""


def _live(rehearsal: Rehearsal, screen: Screen) -> Callable[[Round], None]:
    """The whole upgrade on a terminal; elsewhere a line for each change of phase or node, with the simulated time."""
    from reconcile.report.progress import progress_lines, progress_of

    last: object = None

    def tell(done: Round) -> None:
        nonlocal last
        if done.decision is None:
            return
        status = done.decision.status
        nodes = tuple((node, entry.get("state")) for node, entry in sorted(status.node_states.items()))
        if (status.phase, nodes) == last:
            return
        last = (status.phase, nodes)
        waits = dict.fromkeys(f"{wait.node or wait.step}: {wait.text}" for wait in done.decision.waits)
        states = " ".join(f"{node}={state}" for node, state in nodes)
        news = [f"{status.phase:20} {states}".rstrip(), *(f"{'':10}waits: {wait}" for wait in [*waits][:3])]
        screen.show(list(progress_lines(progress_of(done, rehearsal.clock.now()))), news, f"{_span(rehearsal):>8}  ")

    return tell


def _span(rehearsal: Rehearsal) -> str:
    return str(rehearsal.clock.now() - _START).partition(".")[0]


def _cast(inputs: Inputs) -> KnownTargets:
    from reconcile.simulator.actors.fault_options import KnownTargets

    def named(kind: str) -> tuple[str, ...]:
        bodies = [source.body for source in inputs.objects if source.body["kind"] == kind]
        return tuple(sorted(_full_name(body) for body in bodies))

    return KnownTargets(nodes=named("Node"), machines=named("VirtualMachine"))


def _full_name(body: Body) -> str:
    ref = ref_of(body)
    return f"{ref.namespace}/{ref.name}" if ref.namespace else ref.name
