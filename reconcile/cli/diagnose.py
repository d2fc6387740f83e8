"""`diagnose`: the known causes of trouble with an upgrade, from files, a support bundle or the cluster."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

import click

from reconcile.cli.candidates import plan_names
from reconcile.cli.catalogue import template_set_in
from reconcile.cli.connect import Target, cluster_options, wall_clock
from renderer.cli.answer import Model, answer, output_option_of
from renderer.cli.input_options import FILE, InputOptions
from renderer.errors import ExitCode, problem
from renderer.model.document_type import DIAGNOSIS_REPORT

if TYPE_CHECKING:
    from reconcile.diagnosis.chain import Logs
    from reconcile.diagnosis.of_status import Upgrades, UpgradeSubject
    from reconcile.preflight.check_context import CheckContext
    from reconcile.probes.look import Look
    from renderer.catalog.load import Catalog
    from renderer.documents import Inputs


@click.command
@click.argument("files", nargs=-1, type=FILE, metavar="[FILE|FOLDER|BUNDLE]...")
@click.option(
    "--plan",
    metavar="NAME",
    shell_complete=plan_names,
    help="The UpgradePlan or Upgrade. Defaults to the one that has not ended.",
)
@cluster_options
@output_option_of("text", "json", "markdown")
def diagnose(files: tuple[str, ...], plan: str | None, target: Target, output: str) -> ExitCode:
    """Find the causes of trouble in a cluster or a support bundle.

    \b
    Examples:
      upgradeplan diagnose
      upgradeplan diagnose supportbundle.zip
      upgradeplan diagnose supportbundle.zip -o markdown

    Looks for known causes in files or a support bundle, the logs of pods included, or on the cluster of the kubectl
    context: around an UpgradePlan, or around the Upgrade of Harvester's built-in upgrade. Exits 0 if nothing is found,
    1 if there is a cause, 2 for inputs that cannot be read, 3 if the cluster does not answer.
    """
    if files and (target.kubeconfig or target.context):
        raise click.UsageError("diagnose reads either files or a cluster; leave out --context and --kubeconfig")
    if files:
        model = _in_files(InputOptions(files=files, templates=target.templates), plan)
    else:
        model = _on_cluster(target, plan)
    return _log(model, output)


def _log(model: Model, output: str) -> ExitCode:
    from reconcile.report.diagnosis_report import diagnosis_blocks, diagnosis_lines

    answer(DIAGNOSIS_REPORT, model, output, diagnosis_lines, diagnosis_blocks)
    return ExitCode.NO if model["causes"] else ExitCode.YES


def _in_files(given: InputOptions, name: str | None) -> Model:
    from reconcile.diagnosis.of_status import seen_at
    from reconcile.preflight.on_inputs import context_of_inputs, given_in
    from renderer.cli.input_options import read_form
    from renderer.files.bundle_logs import BundleLogs

    inputs, tree = read_form(given)
    template_set = template_set_in(tree)
    look = given_in(_with_plan_as_object(inputs), template_set.catalog.kinds)
    now = seen_at(look, wall_clock())
    context = context_of_inputs(inputs, template_set, now)
    logs = BundleLogs(given.files)
    return _of_status(
        look, template_set.catalog, context, name, now, lambda ref: logs.of(ref.namespace, ref.name), live=False
    )


def _with_plan_as_object(inputs: Inputs) -> Inputs:
    """A plan that is given is one that the cluster has, with or without what a server gives it."""
    return replace(inputs, plan=None, other_plans=(*inputs.other_plans, inputs.plan)) if inputs.plan else inputs


def _on_cluster(target: Target, name: str | None) -> Model:
    """A plan is diagnosed as `explain` does, the built-in upgrade by its object."""
    from reconcile.cli.parts import parts_of
    from reconcile.diagnosis.of_status import situation_of_status, work_of
    from reconcile.loop.reconciler import Reconciler
    from reconcile.loop.round_causes import check_context_of, diagnose_round, logs_on
    from reconcile.observe.snapshot import judge
    from reconcile.report.diagnosis_report import diagnosis_model

    parts, now = parts_of(target), wall_clock()
    catalog = parts.rendering.catalog
    subject = judge(lambda look: _chosen(look, catalog, name), parts.source, parts.readings).answer
    if subject is None or subject.body["kind"] != "UpgradePlan":
        context, logs = check_context_of(parts, None, now), logs_on(parts)
        return judge(
            lambda look: _of_status(look, catalog, context, name, now, logs, live=True), parts.source, parts.readings
        ).answer
    found = diagnose_round(Reconciler(parts).look(subject.name), parts, now)
    works = judge(
        lambda look: work_of(subject, situation_of_status(subject, catalog, look, now)), parts.source, parts.readings
    ).answer
    return diagnosis_model(subject, works, found, at=now, live=True)


def _of_status(
    look: Look, catalog: Catalog, context: CheckContext, name: str | None, now: datetime, logs: Logs, *, live: bool
) -> Model:
    from reconcile.diagnosis.diagnosing import diagnose as diagnose_situation
    from reconcile.diagnosis.diagnosing import knowledge_of
    from reconcile.diagnosis.of_status import situation_of_status, work_of
    from reconcile.report.diagnosis_report import diagnosis_model

    subject = _chosen(look, catalog, name)
    situation = situation_of_status(subject, catalog, look, now)
    found = diagnose_situation(knowledge_of(catalog, context), situation, logs)
    works = work_of(subject, situation) if subject else ()
    return diagnosis_model(subject, works, found, at=now, live=live)


def _chosen(look: Look, catalog: Catalog, name: str | None) -> UpgradeSubject | None:
    """Raises `Problems` for a name that no upgrade has."""
    from reconcile.diagnosis.diagnosing import built_in_of
    from reconcile.diagnosis.of_status import upgrades_in

    upgrades: Upgrades = upgrades_in(look, catalog, built_in_of(catalog))
    found = upgrades.named(name)
    if name is not None and found is None and not _is_unread(look):
        known = ", ".join(item.name for item in upgrades.all)
        remedy = f"choose one of: {known}" if known else "leave --plan out to look at the cluster"
        raise problem("NoSuchPlan", f"no UpgradePlan or Upgrade is named {name}", remedy=remedy)
    return found


def _is_unread(look: Look) -> bool:
    """True while a snapshot has yet to read the plans."""
    from reconcile.diagnosis.of_status import PLANS, UPGRADES
    from reconcile.probes.look import NOT_READ

    return NOT_READ in (look.list(PLANS), look.list(UPGRADES))
