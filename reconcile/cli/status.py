"""`status`: how far a plan has come, and what it waits for."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconcile.cli.candidates import plan_names
from reconcile.cli.connect import Target, cluster_options, wall_clock
from reconcile.cli.screen import Screen
from renderer.cli.answer import answer, output_option, painted
from renderer.cli.input_options import FILE, FOLDER
from renderer.errors import ExitCode
from renderer.model.document_type import STATUS_REPORT

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.report.progress import Model

_EVERY = 2.0


@click.command
@click.argument("name", required=False, metavar="[PLAN]", shell_complete=plan_names)
@cluster_options
@click.option("--watch", "-w", is_flag=True, help="Follow the progress until the plan has ended.")
@click.option(
    "--rehearsal",
    type=FILE,
    metavar="FILE",
    help="Compare with this rehearsal, as `rehearse --report FILE.json` writes it, instead of earlier plans.",
)
@click.option("--contexts", is_flag=True, help="Show the plans of the clusters of all contexts in one table.")
@click.option(
    "--kubeconfigs",
    type=FOLDER,
    metavar="FOLDER",
    help="The same for the clusters of all kubeconfig files in FOLDER.",
)
@output_option
def status(
    name: str | None,
    target: Target,
    watch: bool,
    rehearsal: str | None,
    contexts: bool,
    kubeconfigs: str | None,
    output: str,
) -> ExitCode:
    """Show the progress of a plan, or the plans of many clusters.

    \b
    Examples:
      upgradeplan status
      upgradeplan status hvst-upgrade-864fh --watch
      upgradeplan status --contexts

    Shows the phases and nodes, how long a phase takes and usually took, what the plan waits for and since when. With
    --watch, a terminal that is too small shows the most important lines. Exits 1 if the plan has failed, or if it
    cannot continue because no manager runs.

    --contexts and --kubeconfigs query many clusters in parallel. A cluster that cannot be queried is a row with the
    reason. Exits 1 if any plan has failed, otherwise 3 if a cluster could not be queried.
    """
    if contexts or kubeconfigs is not None:
        _refuse_one(target, watch=watch, rehearsal=rehearsal, contexts=contexts, kubeconfigs=kubeconfigs)
        from reconcile.cli.status_of_clusters import status_of_clusters

        return status_of_clusters(target, os.environ, name, kubeconfigs, output)
    from reconcile.cli.parts import hurried, nobody_works, parts_of, plan_named
    from reconcile.loop.reconciler import Reconciler
    from reconcile.observe.patience import SECONDS, Patience
    from reconcile.report.progress import progress_of

    parts = parts_of(target)
    plan = plan_named(parts, name) if watch else _answered(partial(plan_named, parts, name))
    usual = _usual(parts, plan, rehearsal)

    def look() -> Model:
        here = hurried(parts, Patience(SECONDS, time.monotonic))
        model = _noted(progress_of(Reconciler(here).look(plan), wall_clock(), usual), parts)
        if (idle := nobody_works(parts, model["phase"], plan)) is None:
            return model
        return {**model, "managed": False, "problems": [*model["problems"], idle.why], "next": idle.command}

    models = _changes(look, watch)
    if watch and output == "text":
        model = _watched(models)
    else:
        for model in models:
            answer(STATUS_REPORT, model, output, _lines)
            sys.stdout.flush()
    return ExitCode.NO if model["phase"] == "Failed" or not model["managed"] else ExitCode.YES


def _noted(model: Model, parts: ReconcilerDeps) -> Model:
    """The model with a note on logs that are wanted and not stored, while the plan is under way."""
    from reconcile.cluster.errors import ClusterError
    from reconcile.pod_logs.collector_pods import why_not_stored
    from reconcile.pod_logs.plan_pods import NAMESPACE
    from reconcile.status.plan import TERMINAL

    found = ""
    if model["phase"] not in ("", *TERMINAL):
        with suppress(ClusterError):
            found = why_not_stored(parts.source, NAMESPACE)
    return {**model, "notes": [found]} if found else model


def _answered(ask: Callable[[], str]) -> str:
    """The first answer of the API server. Raises `Away` where there is none in time."""
    from reconcile.cluster.errors import Away
    from reconcile.observe.patience import SECONDS, NoAnswerError, Patience

    try:
        return Patience(SECONDS, time.monotonic).answer(ask)
    except NoAnswerError as error:
        raise Away(str(error), remedy="wait and retry; status --watch waits longer") from error


def _refuse_one(target: Target, **given: object) -> None:
    """Refuses what is for one cluster, or names the clusters twice."""
    if given["contexts"] and given["kubeconfigs"] is not None:
        raise click.UsageError("--contexts and --kubeconfigs name the clusters in two ways")
    chosen = "--contexts" if given["contexts"] else "--kubeconfigs"
    one = {"--watch": given["watch"], "--rehearsal": given["rehearsal"], "--context": target.context}
    one |= {"--kubeconfig": target.kubeconfig} if given["kubeconfigs"] is not None else {}
    for option, value in one.items():
        if value:
            raise click.UsageError(f"{chosen} is for many clusters, and cannot be combined with {option}")


def _lines(model: Model) -> Iterator[str]:
    """In colour, where a terminal shows it."""
    from reconcile.report.progress_view import progress_view

    yield from (painted(line.text, line.tone.value) if line.tone.value else line.text for line in progress_view(model))


def _usual(parts: ReconcilerDeps, plan: str, rehearsal: str | None) -> Mapping[str, int]:
    """The seconds that phases take: in the rehearsal that is named, else in earlier plans of this cluster."""
    from reconcile.loop.plan_round import PLANS
    from reconcile.probes.look import ReadFailure
    from reconcile.report.usual_durations import durations_of_plans, durations_of_report

    if rehearsal is not None:
        from reconcile.cli.report import report_in

        return durations_of_report(report_in(Path(rehearsal)))
    found = parts.source.list(PLANS)
    others = () if isinstance(found, ReadFailure) else [body for body in found if body["metadata"]["name"] != plan]
    return durations_of_plans(others, [item.phase for item in parts.rendering.catalog.phases])


def _changes(look: Callable[[], Model], watch: bool) -> Iterator[Model]:
    """Yields what there is to see now; with `watch` again whenever something but the time is new, until the plan has
    ended."""
    shown: Model = {}
    while True:
        model = look()
        if {**model, "at": ""} != shown:
            yield model
        shown = {**model, "at": ""}
        if not watch or model["phase"] in ("Succeeded", "Failed"):
            return
        time.sleep(_EVERY)


def _watched(models: Iterator[Model]) -> Model:
    """Shows each, on a terminal in the place of the one before it; answers the last."""
    from reconcile.report.progress_view import progress_lines, progress_view

    with Screen(sys.stdout) as screen:
        for model in models:
            screen.show(partial(progress_view, model), [*progress_lines(model), ""])
    return model
