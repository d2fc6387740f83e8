"""`render --clusters`: renders a folder of clusters, each to a folder of its own, and what agents are given for all of
them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from renderer.cli.answer import warn
from renderer.cli.cluster_folders import ClustersAsked, answer_clusters
from renderer.cli.cluster_pool import rendered_clusters
from renderer.cli.cluster_worker import ClusterWorker, WorkerSetup
from renderer.cli.delivery_options import DeliveryWords, layout_in, options_of, path_in_repository
from renderer.cli.input_options import InputOptions, tree_of
from renderer.cli.version import installed_version
from renderer.clusters.cluster_rollout import FROM_ONE_FOLDER, ROLLOUT, ClusterRollout, pause_problems
from renderer.clusters.rendered_cluster import RenderedCluster, named
from renderer.clusters.wave_choice import ChosenWave, choose_clusters
from renderer.delivery.agents import LAYOUT, DeliveryShape
from renderer.delivery.delivery_rules import DeliveryRules, load_rules
from renderer.delivery.prepare_delivery import agent_templates
from renderer.errors import ExitCode, Problem, Problems
from renderer.files.cluster_folders import ClustersRead, read_clusters
from renderer.files.inputs import read_release
from renderer.source_document import WAVES_FILE, Role, is_plan_or_release
from renderer.validation import document_problems

if TYPE_CHECKING:
    from renderer.delivery.options import DeliveryOptions
    from renderer.yaml_io import Document


def render_clusters(given: InputOptions, asked: ClustersAsked, delivered: DeliveryWords, output: str) -> ExitCode:
    """Raises `Problems` with all that is wrong. Then clusters that are right have been written, unless it is the waves
    or what all share that is wrong; the rest is as it was."""
    tree = tree_of(given)
    rules, options = load_rules(tree, document_problems), _options(delivered, Path(asked.output))
    found = read_clusters(Path(asked.folder))
    shared = _with_release(found, given.release)
    waves = _waves(found, options, rules, asked.folder)
    setup = WorkerSetup(
        templates=given.templates,
        shared=shared,
        plan_template=found.template,
        output=asked.output,
        layout=LAYOUT if options else delivered.layout or layout_in(Path(asked.output) / ROLLOUT),
        options=options and replace(options, agents=()),
        version=installed_version(),
        allow_secrets=asked.allow_secrets,
        write=not asked.check and not found.problems,
        keeps_plan=bool(options and FROM_ONE_FOLDER in options.agents),
    )
    worker = ClusterWorker(setup)
    rendered = {item.name: item for item in rendered_clusters(worker, setup, found.clusters, asked.jobs)}
    _refuse(found, rendered)
    warn(options.warnings() if options and options.agents else ())
    templates = worker.template_set
    rollout = ClusterRollout(
        name=found.waves.name if found.waves else "",
        waves=waves,
        clusters=rendered,
        layout=setup.layout,
        options=options,
        rules=rules,
        kinds=templates.catalog.kinds,
        templates=agent_templates(templates.templates, tree),
    )
    return answer_clusters(rollout, asked, output)


def _options(words: DeliveryWords, out: Path) -> DeliveryOptions | None:
    """The delivery that is asked for, or that the last rendering had."""
    options = options_of(
        words, out / ROLLOUT, through=None, also=(), path=path_in_repository(out, "").removeprefix(".")
    )
    if options and options.shape is DeliveryShape.PHASES:
        raise click.UsageError("--deliver phases is for one cluster: agents are given the plans of many clusters")
    return options


def _with_release(found: ClustersRead, release: str | None) -> tuple[Document, ...]:
    """The documents that all clusters share; a release that is named takes the place of theirs."""
    if release is None:
        return tuple(found.shared)
    reading = read_release(release)
    found.problems += reading.problems
    return (*(item for item in found.shared if is_plan_or_release(item) is not Role.RELEASE), *reading.documents)


def _waves(
    found: ClustersRead, options: DeliveryOptions | None, rules: DeliveryRules, folder: str
) -> tuple[ChosenWave, ...]:
    """The waves with their clusters; what is wrong with them is added to what was found."""
    agents = options.agents if options else ()
    if found.waves is None:
        if agents and not any(problem.reason == "InvalidWaves" for problem in found.problems):
            found.problems.append(_no_waves(folder))
        return ()
    chosen, problems = choose_clusters(found.waves, {item.name: item.values.labels for item in found.clusters})
    found.problems += [*problems, *pause_problems(chosen, agents, rules, found.waves.file)]
    return chosen


def _no_waves(folder: str) -> Problem:
    message = "not found, and without waves agents would upgrade all clusters at once"
    remedy = "write the waves; one with rest: true has all clusters"
    return Problem(reason="InvalidWaves", message=message, file=str(Path(folder) / WAVES_FILE), remedy=remedy)


def _refuse(found: ClustersRead, rendered: Mapping[str, RenderedCluster]) -> None:
    """Warns of what clusters were warned of, and raises what is wrong."""
    warn(named(_each(rendered, "warnings")))
    if problems := [*found.problems, *named(_each(rendered, "problems"))]:
        raise Problems(problems)


def _each(rendered: Mapping[str, RenderedCluster], part: str) -> Iterator[tuple[str, Problem]]:
    yield from ((name, problem) for name, item in sorted(rendered.items()) for problem in getattr(item, part))
