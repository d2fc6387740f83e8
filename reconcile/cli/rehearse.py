"""`rehearse`: the whole upgrade, played on the user's own objects, with whatever shall go wrong."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from reconcile.cli.journal import journal_at
from reconcile.cli.screen import Screen
from renderer.cli.answer import answer, output_option
from renderer.cli.input_options import FILE, InputOptions, input_options, read
from renderer.errors import ExitCode, problem
from renderer.model.ref import Body, ref_of

if TYPE_CHECKING:
    from reconcile.loop.reconciler import Round
    from reconcile.simulator.actors.fault_options import KnownTargets
    from reconcile.simulator.rehearsal.rehearsal import Rehearsal, RehearsalResult
    from renderer.documents import Inputs

_START = datetime(2026, 1, 1, tzinfo=UTC)
"""Any day will do: what is told are times since the start, and certificates of a facts document end later."""


@click.command
@input_options
@click.option("--fail", multiple=True, metavar="ACT [on NAME]", help="Such as 'pre-drain on node-2', image-import.")
@click.option("--stall", multiple=True, metavar="ACT [on NAME]", help="It never ends.")
@click.option("--slow", multiple=True, metavar="ACT [on NAME]=DURATION", help="It takes so long.")
@click.option("--repeat", multiple=True, metavar="ACT [on NAME]", help="It is done again.")
@click.option("--away", multiple=True, metavar="DURATION [at ACT]", help="The API server is away for so long.")
@click.option("--resume-after", default="10m", show_default=True, metavar="DURATION", help="A held node goes on then.")
@click.option("--journal", type=FILE, metavar="FILE", help="Write every decision there, for `explain --replay`.")
@click.option("--quiet", "-q", is_flag=True, help="No progress, just the report.")
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
    """Play the whole upgrade without a cluster.

    The loop that production runs works on an embedded cluster that holds your own objects; Harvester, Rancher and the
    nodes are played. Nothing is waited for. Exit 1 when the upgrade would not succeed.
    """
    from reconcile.simulator.actors.fault_options import FaultOptions, duration_of, fault_plan_of
    from reconcile.simulator.rehearsal.rehearsal import prepare
    from reconcile.simulator.rehearsal.report import report_lines, report_of
    from renderer.assemble import open_template_set
    from renderer.files.code import CodeCache

    inputs, tree = read(given)
    code = CodeCache()
    template_set = open_template_set(tree, code=code)
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
    answer(report_of(rehearsed, rehearsal.name), output, report_lines)
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
