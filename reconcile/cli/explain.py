"""`explain`: why a plan waits, in the words of what blocks it."""

from __future__ import annotations

import click

from reconcile.cli.connect import Target, cluster_options, wall_clock
from renderer.cli.answer import answer, output_option
from renderer.errors import ExitCode


@click.command
@click.argument("name", required=False, metavar="[PLAN]")
@cluster_options
@output_option
def explain(name: str | None, target: Target, output: str) -> ExitCode:
    """Say why a plan waits, and what to do.

    Looks at what blocks: disruption budgets, virtual machines, volumes, machines that wait for their turn, image
    imports, pods. Exit 1: the plan has failed; 3: the cluster is away.
    """
    from reconcile.cli.parts import parts_of, plan_named
    from reconcile.cluster.errors import Away
    from reconcile.loop.reconciler import Reconciler
    from reconcile.report.explain import absence_of, explanation_lines, explanation_of

    parts = parts_of(target)
    try:
        plan = plan_named(parts, name)
        model = explanation_of(Reconciler(parts).look(plan), parts.source, wall_clock())
    except Away as away:
        answer(absence_of(name or "", away.problem.message, wall_clock()), output, explanation_lines)
        return ExitCode.CLUSTER
    answer(model, output, explanation_lines)
    return ExitCode.NO if model["failed"] else ExitCode.YES
