"""`rehearse`: the whole upgrade on a simulated cluster with the user's own objects, with faults on request."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from reconcile.cli.checked_inputs import checked, unknown_lines, unknown_model
from reconcile.cli.journal import journal_at
from reconcile.cli.rehearsal_report import RunReportFile
from reconcile.cli.screen import Screen, newest_lines
from renderer.cli.answer import Model, answer, redact_by, review_output_option, warn
from renderer.cli.input_options import FILE, InputOptions, input_options, read
from renderer.errors import ExitCode, Problem, Problems, problem
from renderer.markdown.quoting import cell
from renderer.model.document_type import REHEARSAL_REPORT

if TYPE_CHECKING:
    from reconcile.loop.round import Round
    from reconcile.simulator.actors.fault_options import FaultOptions
    from reconcile.simulator.actors.faults import FaultPlan, SimulatedOperation
    from reconcile.simulator.rehearsal.rehearsal import Rehearsal, RehearsalResult
    from renderer.assemble import TemplateSet
    from renderer.catalog.template_tree import TemplateTree
    from renderer.documents import Inputs
    from renderer.files.code import CodeCache

_START = datetime(2026, 1, 1, tzinfo=UTC)
"""Any day will do: the report shows times since the start, and certificates of a facts document expire later."""


class _Rehearse(click.Command):
    """Lists the simulated operations in its help; the table is imported for that only."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from reconcile.simulator.actors.faults import SIMULATED_OPERATIONS

        with formatter.section("Operations"):
            formatter.write_dl([(item.name, _described(item)) for item in SIMULATED_OPERATIONS.values()])


def _described(operation: SimulatedOperation) -> str:
    on = f", on NAME of a {operation.on}" if operation.on else ""
    return f"{operation.what}{on} ({', '.join(sorted(operation.modes))})"


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
@click.option("--skip-preflight", is_flag=True, help="Skip the pre-flight checks, both before and during the upgrade.")
@click.option("--journal", type=FILE, metavar="FILE", help="Record every decision in FILE, for `explain --replay`.")
@click.option(
    "--report",
    "report_file",
    type=FILE,
    metavar="FILE",
    help="Write a report on the run to FILE: a page, Markdown for .md, JSON for .json.",
)
@click.option("--quiet", "-q", is_flag=True, help="Print only the report, no progress.")
@review_output_option
def rehearse(
    given: InputOptions,
    fail: tuple[str, ...],
    stall: tuple[str, ...],
    slow: tuple[str, ...],
    repeat: tuple[str, ...],
    away: tuple[str, ...],
    resume_after: str,
    skip_preflight: bool,
    journal: str | None,
    report_file: str | None,
    quiet: bool,
    output: str,
) -> ExitCode:
    """Run the whole upgrade on a simulated cluster.

    \b
    Examples:
      upgradeplan rehearse examples/three-node
      upgradeplan rehearse examples/three-node --fail 'pre-drain on charlie-2-tink-system'
      upgradeplan rehearse examples/three-node --report rehearsal.html
      upgradeplan rehearse examples/three-node --slow image-import=3h --away '10m at cluster-upgrade'

    Runs the production reconcile loop against an in-memory cluster seeded with your objects; Harvester, Rancher and
    the nodes are simulated, and time is virtual. Exits 1 if the upgrade would not succeed, or if a pre-flight check
    blocks it whose risk the plan does not accept.
    """
    from reconcile.simulator.actors.fault_options import FaultOptions
    from reconcile.simulator.rehearsal.rehearsal import prepare
    from renderer.assemble import assembly_of, open_template_set
    from renderer.files.code import CodeCache

    inputs, tree = read(given)
    code = CodeCache()
    template_set = open_template_set(tree, code=code)
    redact_by(template_set.catalog.redaction)
    warn(template_set.catalog.warnings)
    assembly_of(inputs, template_set).render()  # what cannot be rendered is bad input, as it is for `render`
    unknown = None if skip_preflight else _preflight(inputs, template_set, given)
    _require_nodes(inputs)
    film = RunReportFile(report_file, template_set)
    options = FaultOptions(fail=fail, stall=stall, slow=slow, repeat=repeat, away=away)
    rehearsal = prepare(
        inputs,
        template_set,
        start=_START,
        resume_after=_pause_of(resume_after),
        faults=_fault_plan(options, inputs, tree, code),
        journal=film.kept_too(journal_at(journal, template_set.catalog.redaction)),
    )
    rehearsed = _played(rehearsal.unchecked() if skip_preflight else rehearsal, quiet or output != "text")
    code.save()
    _require_injected(rehearsed)
    warn(_step_warnings(rehearsal))
    film.write(rehearsed, rehearsal.name)
    _answer(rehearsed, rehearsal.name, unknown, output)
    return ExitCode.YES if rehearsed.succeeded else ExitCode.NO


def _answer(rehearsed: RehearsalResult, name: str, unknown: Model | None, output: str) -> None:
    from reconcile.simulator.rehearsal.report import report_lines, report_of
    from reconcile.simulator.rehearsal.report_blocks import report_blocks

    def unknown_checks(shown: Model) -> list[str]:
        return unknown_lines(shown.get("preflight"))

    model = {**report_of(rehearsed, name), **({"preflight": unknown} if unknown else {})}
    answer(
        REHEARSAL_REPORT,
        model,
        output,
        lambda shown: [*report_lines(shown), *unknown_checks(shown)],
        lambda shown: [*report_blocks(shown), *(line for text in unknown_checks(shown) for line in ("", cell(text)))],
    )


def _pause_of(resume_after: str) -> timedelta:
    """Raises `Problems` if it is not a duration."""
    from reconcile.status.times import duration_of

    pause = duration_of(resume_after)
    if not pause:
        message = f"--resume-after: {resume_after!r} is not a duration"
        raise problem("InvalidDuration", message, remedy="write it like 10m or 2h")
    return pause


def _preflight(inputs: Inputs, template_set: TemplateSet, given: InputOptions) -> Model | None:
    """The number of checks that could not look. Raises `Problems` for what blocks the upgrade."""
    from reconcile.loop.preconditions import oldest_of
    from reconcile.preflight.problems import blocking, warning
    from renderer.cluster_rules import begin_problems

    report = checked(inputs, template_set)
    if report is None:
        return None
    warn(warning(report, inputs))
    too_old = begin_problems(inputs, oldest_of(template_set.catalog.values))
    if found := blocking(report, inputs, acceptable=not too_old):
        raise Problems(found, ExitCode.NO)
    return unknown_model(report, given)


def _require_nodes(inputs: Inputs) -> None:
    """Raises `Problems` for nodes that a rehearsal would wait for until the end of time."""
    from renderer.cluster_rules import rehearsal_problems

    if inputs.plan and inputs.release and (found := rehearsal_problems(inputs)):
        raise Problems(found, ExitCode.NO)


def _step_warnings(rehearsal: Rehearsal) -> list[Problem]:
    """The loop's own warnings, each once."""
    from reconcile.decide.builder import STEP_WARNING

    events = (body for body in rehearsal.cluster.store.everything() if body["kind"] == "Event")
    notes = dict.fromkeys(str(body.get("message", "")) for body in events if body.get("reason") == STEP_WARNING)
    return [Problem(reason=STEP_WARNING, message=note) for note in notes]


def _played(rehearsal: Rehearsal, quiet: bool) -> RehearsalResult:
    if quiet:
        return rehearsal.play(_silent)
    with Screen(sys.stderr) as screen:
        return rehearsal.play(_live(rehearsal.clock.now, screen))


def _silent(done: Round) -> None:
    """Shows nothing."""


_NAMED = 12
"""Nodes that fit on a screen one by one; of more than these just the states are counted."""
_LINES = 20
"""About so many lines are written without a terminal while the many nodes pass through one state."""


def _live(now: Callable[[], datetime], screen: Screen) -> Callable[[Round], None]:
    """The whole upgrade on a terminal, of many nodes a line; elsewhere a line for each change of phase or node, of many
    nodes one now and then. Each with the simulated time."""
    from reconcile.report.progress import progress_of
    from reconcile.report.progress_view import progress_view

    last: object = None

    def show(done: Round) -> None:
        nonlocal last
        if done.decision is None:
            return
        status = done.decision.status
        nodes = tuple((node, entry.get("state")) for node, entry in sorted(status.node_states.items()))
        if (status.phase, nodes) == last:
            return
        last, at = (status.phase, nodes), _span(now())
        if len(nodes) > _NAMED:
            counts, shares = _of_many([str(state) for _, state in nodes])
            screen.show(
                newest_lines([f"{at:>8}  {status.phase:20} {counts}"]), [f"{status.phase:20} {shares}"], f"{at:>8}  "
            )
            return
        states = " ".join(f"{node}={state}" for node, state in nodes)
        waits = dict.fromkeys(
            wait.summary or ": ".join(filter(None, (wait.node or wait.step, wait.text))) for wait in done.decision.waits
        )
        news = [f"{status.phase:20} {states}".rstrip(), *(f"{'':10}waits: {wait}" for wait in [*waits][:3])]
        view = {**progress_of(done, now()), "waysOut": [], "next": ""}
        screen.show(lambda room: progress_view(view, room), news, f"{at:>8}  ")

    return show


def _of_many(states: Sequence[str]) -> tuple[str, str]:
    """Counts the nodes in each state; and of states with a share worth a line, that share, which seldom changes."""
    counts = Counter(states)
    shares = {state: count * _LINES // len(states) * 100 // _LINES for state, count in counts.items()}
    return (
        ", ".join(f"{count} {state}" for state, count in counts.items()),
        ", ".join(f"{share}% {state}" for state, share in shares.items() if share),
    )


def _span(now: datetime) -> str:
    return str(now - _START).partition(".")[0]


def _fault_plan(options: FaultOptions, inputs: Inputs, tree: TemplateTree, code: CodeCache) -> FaultPlan:
    """The plan is rendered only for a name that may be a Job of its own phases."""
    from reconcile.simulator.actors.fault_options import fault_plan_of, known_targets
    from renderer.assemble import assemble

    objects = [source.body for source in inputs.objects]
    try:
        return fault_plan_of(options, known_targets(objects))
    except Problems:
        rendered = assemble(inputs, tree, code=code).render()
        steps = [step for phase in rendered.phases for step in phase.steps]
        every = [*steps, *(step.undo for step in steps if step.undo)]
        bodies = [manifest.body for step in every for manifest in step.manifests]
        return fault_plan_of(options, known_targets(objects, bodies))


def _require_injected(result: RehearsalResult) -> None:
    """Raises `Problems` for faults that made no difference to an upgrade that succeeded."""
    happened = ", ".join(sorted(result.operations))
    problems = [
        Problem(
            reason="FaultNotInjected",
            field=fault.option,
            message=f"'{fault.value}' had no effect: it did not take place in this rehearsal",
            remedy=f"choose an operation that takes place: {happened}",
        )
        for fault in result.not_injected
    ]
    if problems and result.succeeded:
        raise Problems(problems)
