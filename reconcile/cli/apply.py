"""`apply`: a whole plan from a laptop with the loop that production runs, or one phase of it, once."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING

import click

from reconcile.cli.candidates import plan_names
from reconcile.cli.connect import Target, cluster_options, connect_to, dial_of, template_set_of, wall_clock
from reconcile.cli.diff import inputs_of
from reconcile.cli.journal import journal_at
from reconcile.cli.plan_run import PlanRun
from reconcile.cli.prompt import typed
from reconcile.cli.screen import Screen
from renderer.cli.answer import say
from renderer.cli.candidates import phase_names
from renderer.cli.input_options import FILE
from renderer.errors import ExitCode, Problems, problem

if TYPE_CHECKING:
    from reconcile.cli.connect import Connection
    from reconcile.cluster.errors import Denied
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.loop.journal import JournalEntry
    from reconcile.observe.source import Source
    from renderer.assemble import TemplateSet
    from renderer.documents import Inputs
    from renderer.model.path import Path
    from renderer.model.ref import Body, Ref
    from renderer.source_document import SourceDocument


@click.command
@click.argument("files", nargs=-1, type=click.Path(), metavar="[FILE|FOLDER]...")
@click.option(
    "--plan", "name", metavar="NAME", shell_complete=plan_names, help="Run a plan that is already in the cluster."
)
@click.option(
    "--release",
    type=click.Path(),
    metavar="FILE|URL|ISO",
    help="The release's harvester-release.yaml, its URL, or the ISO image that contains it.",
)
@click.option(
    "--phase", metavar="NAME", shell_complete=phase_names, help="Apply this phase only, and wait until it is done."
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--journal", type=FILE, metavar="FILE", help="Record every decision in FILE, for `explain --replay`.")
@cluster_options
def apply(
    files: tuple[str, ...],
    name: str | None,
    release: str | None,
    phase: str | None,
    yes: bool,
    journal: str | None,
    target: Target,
) -> int:
    """Run the upgrade from this machine.

    \b
    Examples:
      upgradeplan apply upgradeplan.yaml
      upgradeplan apply --plan hvst-upgrade-864fh --context site --yes
      upgradeplan apply upgradeplan.yaml --phase ImagePreload

    Creates the plan in FILES if it is not in the cluster, runs its phases and shows the progress. Ctrl-C stops after
    the current write; run the command again, or the in-cluster manager, to continue from the plan's status. While
    another loop runs the upgrade, shows its progress, and takes over if that loop ends. Exits 0 when the plan has
    succeeded, 1 if it has failed, 130 at Ctrl-C.
    """
    from reconcile.cli.parts import parts_on, plan_named, require_fitting_api

    connection = connect_to(target)
    inputs = inputs_of(files, release, name)
    template_set = cache(lambda: template_set_of(target.templates))
    parts = cache(lambda: parts_on(connection, template_set()))
    if not yes:
        _confirm(connection, lambda: _extent(parts, inputs, name, phase))
    if phase is not None:
        from reconcile.cli.one_phase import apply_phase

        return apply_phase(target, inputs, name, phase)
    keep = journal_at(journal, template_set().catalog.redaction)
    require_fitting_api(parts())
    plan = _created(parts(), inputs) if name is None else plan_named(parts(), name)
    return _drive(connection, template_set(), parts(), plan, keep)


def _confirm(connection: Connection, extent: Callable[[], str]) -> None:
    """Asks for the name of the context: an upgrade must not land on another cluster. `extent` says what it does."""
    if not sys.stdin.isatty():
        message = f"refusing to change context {connection.context} at {connection.server} without confirmation"
        raise problem("NotConfirmed", message, remedy="pass --yes, and --context to name the cluster")
    question = f'Upgrade cluster "{connection.context}" ({connection.server}){extent()}.'
    question += f' Type "{connection.context}" to continue'
    if typed(question) != connection.context:
        message = f"that is not the context ({connection.context}); nothing was changed"
        raise problem("NotConfirmed", message, exit_code=ExitCode.NO)


def _extent(parts_now: Callable[[], ReconcilerDeps], inputs: Inputs | None, name: str | None, phase: str | None) -> str:
    """Describes what is about to run; empty if that cannot be read: the command itself reports why, once it is
    confirmed."""
    from reconcile.cli.parts import plan_named
    from reconcile.report.extent import extent_of
    from renderer.model.plan_api import plan_ref

    if phase is not None:
        return f": phase {phase} only"
    try:
        parts = parts_now()
        given = inputs.plan.body if inputs and inputs.plan and name is None else None
        plan = given or parts.source.get(plan_ref(plan_named(parts, name)))
        if not isinstance(plan, Mapping):
            return ""
        return f" {extent_of(parts.source, plan, len(parts.rendering.catalog.phases))}"
    except Problems:
        return ""


def _created(parts: ReconcilerDeps, inputs: Inputs | None) -> str:
    """The plan of the files, created if it is not there, or the one that runs."""
    from reconcile.cli.parts import plan_named
    from reconcile.cluster.errors import AlreadyExists, Denied
    from reconcile.loop.preconditions import check_preconditions, oldest_of
    from renderer.model.ref import ref_of

    if inputs is None or inputs.plan is None:
        return plan_named(parts, None)
    check_preconditions(parts.source, oldest_of(parts.rendering.catalog.values))
    ref = ref_of(inputs.plan.body)
    if inputs.generated and (begun := _begun(parts.source, inputs.plan.body)):
        say([f"{begun} has not ended; continuing from its status"])
        return begun.name
    try:
        made = parts.cluster.create(parts.kinds.row(ref.api_version, ref.kind).kind, _to_create(inputs))
        ref = ref_of(made.body)
        say([f"created {ref}"])
    except AlreadyExists:
        say([f"{ref} already exists; continuing from its status"])
    except Denied as error:
        raise _each_cause(error, inputs.plan) from error
    return ref.name


def _each_cause(error: Denied, plan: SourceDocument) -> Problems:
    """The webhook's reasons as problems of the plan's file."""
    from renderer.model.path import PathError, parse_path

    def place(field: str) -> Path:
        try:
            return parse_path(field)
        except PathError:
            return ()

    found = [plan.problem("Denied", cause.message, place(cause.field)) for cause in error.causes]
    return Problems(found, ExitCode.CLUSTER) if found else error


def _to_create(inputs: Inputs) -> Body:
    """The plan of the files; the name that stands for a generated one is left to the API server."""
    from reconcile.objects import as_written

    body = as_written(inputs.plan.body) if inputs.plan else {}
    kept = ("labels", "annotations", "generateName" if inputs.generated else "name")
    return {**body, "metadata": {key: value for key, value in body["metadata"].items() if key in kept}}


def _begun(source: Source, plan: Body) -> Ref | None:
    """A plan that was created from the same file and has not ended: the command is run again to go on."""
    from reconcile.decide.plan import is_over
    from reconcile.loop.plan_round import PLANS
    from reconcile.probes.look import ReadFailure
    from reconcile.status.plan_body import status_of
    from renderer.model.ref import ref_of

    found = source.list(PLANS)
    same = (
        other
        for other in (() if isinstance(found, ReadFailure) else found)
        if other["metadata"].get("generateName") == plan["metadata"]["generateName"]
        and other.get("spec") == plan.get("spec")
        and not is_over(status_of(other))
    )
    return next((ref_of(other) for other in same), None)


def _drive(
    connection: Connection,
    template_set: TemplateSet,
    parts: ReconcilerDeps,
    plan: str,
    journal: Callable[[JournalEntry], None],
) -> int:
    from reconcile.loop.reconciler import Reconciler
    from reconcile.loop.setup import ManagerConfig, assemble_manager

    run = PlanRun(plan, Reconciler(parts), Screen(sys.stdout))
    manager = assemble_manager(
        ManagerConfig(
            cluster=connection.cluster,
            template_set=template_set,
            schemas=parts.schemas,
            now=wall_clock,
            clock=time.monotonic,
            random=random.random,
            dial=dial_of(connection),
            read=connection.read,
            log=run.log,
            identity=f"apply-{random.getrandbits(64):x}",
            lease_namespace="harvester-system",
            on_round=run.on_round,
            on_standby=run.on_standby,
            journal=journal,
        )
    )
    run.run(manager)
    return run.report()
