"""`preflight`: every check of the catalogue, on files or on a cluster, with all offenders and what to do about each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconcile.cli.candidates import node_names
from reconcile.cli.check_run import (
    FORMATS,
    CheckQuestion,
    answers_to,
    check_options,
    show_answers,
    time_from,
)
from reconcile.cli.checked_inputs import BEFORE
from reconcile.cli.connect import Target, cluster_options, wall_clock
from renderer.cli.answer import output_option_of
from renderer.cli.input_options import FILE, InputOptions
from renderer.errors import ExitCode
from renderer.model.check import CheckTime
from renderer.model.document_type import PREFLIGHT_REPORT

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.probes.look import Group
    from renderer.assemble import TemplateSet
    from renderer.model.ref import Body, Ref


@click.command
@click.argument("files", nargs=-1, type=FILE, metavar="[FILE|FOLDER]...")
@click.option("--plan", type=FILE, metavar="FILE|NAME", help="The UpgradePlan: its file, or its name.")
@click.option(
    "--release",
    type=FILE,
    metavar="FILE|URL|ISO",
    help="The release's harvester-release.yaml, its URL, or the ISO image that contains it.",
)
@click.option(
    "--cluster",
    type=FILE,
    metavar="FILE|FOLDER",
    multiple=True,
    help="Objects of the cluster: the output of `kubectl get -o yaml` or a support bundle. Overrides FILES.",
)
@click.option(
    "--when",
    "times",
    multiple=True,
    type=click.Choice([time.value for time in CheckTime]),
    help="Run only the checks of this time. Repeatable. Defaults to all but after.",
)
@click.option(
    "--node",
    metavar="NAME",
    shell_complete=node_names,
    help="The node that is next, for checks before each node. Defaults to each.",
)
@check_options
@cluster_options
@output_option_of(*FORMATS)
def preflight(
    files: tuple[str, ...],
    plan: str | None,
    release: str | None,
    cluster: tuple[str, ...],
    times: tuple[str, ...],
    ids: tuple[str, ...],
    node: str | None,
    everything: bool,
    at: str | None,
    target: Target,
    output: str,
) -> ExitCode:
    """Check whether the cluster can be upgraded.

    \b
    Examples:
      upgradeplan preflight supportbundle.zip
      upgradeplan preflight upgradeplan.yaml harvester-release.yaml --cluster facts
      upgradeplan preflight --context site

    Checks the files that are given, or the cluster of the kubectl context if there are none. With --kubeconfig or
    --context it checks that cluster, and takes only the plan and the release from files. Both are optional; checks that
    need them are unknown without them. Exits 1 if a check blocks the upgrade, 3 if none does but one that these inputs
    should answer could not be evaluated.
    """
    from reconcile.report.preflight_report import BEFORE_AN_UPGRADE

    asked = CheckQuestion(
        given=InputOptions(files=files, plan=plan, release=release, cluster=cluster, templates=target.templates),
        target=target,
        ids=ids,
        when=tuple(CheckTime(time) for time in times) or BEFORE,
        node=node,
        now=time_from(at),
        machines=not ids,
    )
    return show_answers(answers_to(asked), asked, PREFLIGHT_REPORT, BEFORE_AN_UPGRADE, output, everything=everything)


def needs_on_cluster(parts: ReconcilerDeps, template_set: TemplateSet, plan: Body | None) -> tuple[Group | Ref, ...]:
    """All that the checks look at on this cluster, be the plan there or not."""
    from reconcile.observe.facts import gather
    from reconcile.observe.snapshot import judge
    from reconcile.preflight.check_context import check_context, checks_of
    from reconcile.preflight.looked_at import looked_at
    from reconcile.preflight.rounds import CheckRounds

    checks = checks_of(template_set.catalog)
    objects = gather(parts.source, plan or {})
    context = check_context(template_set, parts.schemas, wall_clock(), plan=plan, objects=objects)
    judged = judge(CheckRounds(checks, context, BEFORE).report, parts.source, parts.readings)
    return looked_at(checks, judged.looked_at)
