"""`explain`: why a plan waits, in the words of what blocks it, or where a journal's decisions would differ today."""

from __future__ import annotations

from pathlib import Path

import click

from reconcile.cli.candidates import plan_names
from reconcile.cli.connect import Target, cluster_options, wall_clock
from reconcile.cli.support_bundle import offer_bundle
from renderer.cli.answer import answer, output_option
from renderer.cli.input_options import FILE
from renderer.errors import ExitCode, problem
from renderer.model.document_type import EXPLAIN_REPORT, REPLAY_REPORT


@click.command
@click.argument("name", required=False, metavar="[PLAN]", shell_complete=plan_names)
@click.option(
    "--replay", type=FILE, metavar="JOURNAL", help="Replay the decisions that --journal recorded, and compare."
)
@click.option(
    "--support-bundle", is_flag=True, help="Also create a SupportBundle, as evidence before anything is repaired."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation of --support-bundle.")
@cluster_options
@output_option
def explain(
    name: str | None, replay: str | None, support_bundle: bool, yes: bool, target: Target, output: str
) -> ExitCode:
    """Explain why a plan waits and what to do.

    \b
    Examples:
      upgradeplan explain
      upgradeplan explain --support-bundle
      upgradeplan explain --replay journal.jsonl

    Looks for causes: nodes that are not ready or do not come back, disruption budgets, virtual machines, volumes,
    what Rancher reports, machines that wait for their turn, image imports, pods, deleted objects. Exits 1 if the plan
    has failed or a replayed decision differs, 3 if the cluster does not answer.
    """
    if replay is not None and (target.kubeconfig or target.context):
        raise click.UsageError("--replay reads a file, not a cluster; leave out --context and --kubeconfig")
    if support_bundle and (replay is not None or output != "text"):
        raise click.UsageError("--support-bundle works on a cluster, with text output; leave out -o and --replay")
    if replay is not None:
        return _replay(Path(replay), name, target, output)
    from reconcile.cli.parts import nobody_works, parts_of, plan_named
    from reconcile.cluster.errors import Away
    from reconcile.loop.reconciler import Reconciler
    from reconcile.report.explain import absence_of, explanation_lines, explanation_of

    parts = parts_of(target)
    try:
        plan = plan_named(parts, name)
        model = explanation_of(Reconciler(parts).look(plan), parts, wall_clock())
    except Away as away:
        answer(EXPLAIN_REPORT, absence_of(name or "", away.problem.message, wall_clock()), output, explanation_lines)
        return ExitCode.CLUSTER
    if idle := nobody_works(parts, model["phase"], plan):
        model["problems"].append(idle.why)
        if not model["causes"]:
            model["next"] = idle.command
    answer(EXPLAIN_REPORT, model, output, explanation_lines)
    if support_bundle:
        offer_bundle(parts.cluster, plan, model["message"], yes=yes)
    return ExitCode.NO if model["failed"] else ExitCode.YES


def _replay(path: Path, name: str | None, target: Target, output: str) -> ExitCode:
    """Needs templates, and no cluster."""
    from reconcile.cli.connect import template_set_of
    from reconcile.report.replay import NO_LINE, replay, replay_lines, replay_of
    from renderer.files.filesystem import require_file

    require_file(path)
    found = list(replay(path, template_set_of(target.templates), name))
    if all((line.problem or "").startswith(NO_LINE) for line in found):
        remedy = "name the file that was given as --journal, and the plan as it stands in it"
        raise problem("NoJournal", "contains no decision of this plan", file=str(path), remedy=remedy)
    model = replay_of(str(path), found)
    answer(REPLAY_REPORT, model, output, replay_lines)
    return ExitCode.YES if model["same"] else ExitCode.NO
