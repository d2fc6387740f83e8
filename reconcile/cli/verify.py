"""`verify`: whether an upgrade has left the cluster as expected, by the checks that run after it."""

from __future__ import annotations

import click

from reconcile.cli.candidates import plan_names
from reconcile.cli.check_run import FORMATS, CheckQuestion, answers_to, check_options, show_answers, time_from
from reconcile.cli.connect import Target, cluster_options
from reconcile.cli.subjects import split_subjects
from renderer.cli.answer import output_option_of
from renderer.cli.candidates import or_files
from renderer.cli.input_options import FILE, InputOptions
from renderer.errors import ExitCode
from renderer.model.check import CheckTime
from renderer.model.document_type import VERIFICATION_REPORT


@click.command
@click.argument("subjects", nargs=-1, type=FILE, metavar="[PLAN|FILE|FOLDER]...", shell_complete=or_files(plan_names))
@click.option(
    "--release",
    type=FILE,
    metavar="FILE|URL|ISO",
    help="The release's harvester-release.yaml, its URL, or the ISO image that contains it. Defaults to the plan's.",
)
@check_options
@cluster_options
@output_option_of(*FORMATS)
def verify(
    subjects: tuple[str, ...],
    release: str | None,
    ids: tuple[str, ...],
    everything: bool,
    at: str | None,
    target: Target,
    output: str,
) -> ExitCode:
    """Check whether an upgrade has left the cluster as expected.

    \b
    Examples:
      upgradeplan verify
      upgradeplan verify hvst-upgrade --context site
      upgradeplan verify supportbundle.zip

    Runs the checks of the time after an upgrade: versions of all nodes, charts, volumes, add-ons, what was changed for
    the upgrade, virtual machines that were stopped or need a restart. It looks at the cluster of the kubectl context,
    or at the files or the support bundle that are given; PLAN is a plan's name, and defaults to the one that ended
    last. Exits 1 if something is not as expected, 3 if nothing is but a check that these inputs should answer could not
    be evaluated.
    """
    from reconcile.report.preflight_report import AFTER_AN_UPGRADE

    name, files = split_subjects(subjects)
    given = InputOptions(files=files, name=name, release=release, templates=target.templates)
    asked = CheckQuestion(given=given, target=target, ids=ids, when=(CheckTime.AFTER,), now=time_from(at))
    return show_answers(answers_to(asked), asked, VERIFICATION_REPORT, AFTER_AN_UPGRADE, output, everything=everything)
