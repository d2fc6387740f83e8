"""`status` of many clusters: asks them side by side, a bounded number at a time."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reconcile.cli.connect import Target, connect_to, template_set_of, wall_clock
from reconcile.cluster.errors import Away
from reconcile.cluster.kubeconfig import contexts_of, kubeconfigs_in
from reconcile.cluster.protocol import Selection
from reconcile.observe.patience import SECONDS, NoAnswerError, Patience
from reconcile.report.plans_of_clusters import ClusterPlans, Model, plans_of_clusters, table_of_clusters
from renderer.cli.answer import answer, table
from renderer.errors import ExitCode, Problems
from renderer.model.document_type import CLUSTERS_STATUS
from renderer.model.plan_api import PLAN_API_VERSION

if TYPE_CHECKING:
    from renderer.model.ref import Kind

AT_ONCE = 64
"""Clusters that are asked at the same time."""


def status_of_clusters(
    target: Target, environ: Mapping[str, str], name: str | None, folder: str | None, output: str
) -> ExitCode:
    """The plans of the clusters of all contexts, or of all kubeconfig files in a folder. A cluster that is away is a
    row of its own. Raises `Problems` where nothing says which clusters there are."""
    templates = template_set_of(target.templates)
    kind = templates.catalog.kinds.row(PLAN_API_VERSION, "UpgradePlan").kind
    targets = _in_folder(folder) if folder is not None else _contexts(environ, target)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = list(pool.map(partial(_ask, kind), targets, targets.values()))
    model = plans_of_clusters(found, templates.catalog.node_states, wall_clock(), name)
    answer(CLUSTERS_STATUS, model, output, _lines)
    return ExitCode.NO if model["failed"] else ExitCode.CLUSTER if model["away"] else ExitCode.YES


def _contexts(environ: Mapping[str, str], target: Target) -> dict[str, Target]:
    names = contexts_of(environ, target.kubeconfig)
    return {name: Target(kubeconfig=target.kubeconfig, context=name, templates=()) for name in names}


def _in_folder(folder: str) -> dict[str, Target]:
    """By the name of the file without its ending; of each its current context."""
    files = kubeconfigs_in(Path(folder))
    return {path.stem: Target(kubeconfig=str(path), context="", templates=()) for path in files}


def _ask(kind: Kind, cluster: str, target: Target) -> ClusterPlans:
    """A program that gives the credentials has its own time."""
    try:
        client = connect_to(target).cluster
        listing = Patience(SECONDS, time.monotonic).answer(partial(client.list, Selection(kind=kind)))
    except NoAnswerError as error:
        remedy = "to wait longer, query this cluster alone with status --watch"
        return ClusterPlans(cluster=cluster, problem=Away(str(error), remedy=remedy).problem)
    except Problems as error:
        return ClusterPlans(cluster=cluster, problem=error.problems[0])
    return ClusterPlans(cluster=cluster, plans=listing.items)


def _lines(model: Model) -> Iterator[str]:
    yield from table(table_of_clusters(model))
    counts = ((model["failed"], "failed"), (model["away"], "could not be queried"))
    if said := [f"{count} {text}" for count, text in counts if count]:
        yield f"{len(model['clusters'])} clusters: {', '.join(said)}"
