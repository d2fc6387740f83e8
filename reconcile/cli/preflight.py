"""`preflight`: every check of the catalogue, on files or on a cluster, with all offenders and what to do about each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from reconcile.cli.catalogue import template_set_in
from reconcile.cli.checked_inputs import BEFORE
from reconcile.cli.connect import Target, cluster_options, wall_clock
from renderer.cli.answer import Model, answer, output_option_of
from renderer.cli.input_options import FILE, InputOptions
from renderer.errors import ExitCode, problem
from renderer.model.check import CheckTime
from renderer.model.document_type import PREFLIGHT_REPORT

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.observe.source import Source
    from reconcile.preflight.check_context import CheckContext
    from reconcile.preflight.check_result import CheckReport
    from reconcile.preflight.machines import MachineTable
    from reconcile.probes.look import Group, Look
    from renderer.assemble import TemplateSet
    from renderer.catalog.checks import DeclaredCheck
    from renderer.errors import Problem
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
@click.option("--check", "ids", multiple=True, metavar="ID", help="Run only this check. Repeatable.")
@click.option("--node", metavar="NAME", help="The node that is next, for checks before each node. Defaults to each.")
@click.option("--all", "everything", is_flag=True, help="Show the checks that have passed as well.")
@click.option("--at", metavar="TIME", help="Check certificates at this time, 2027-01-31 or RFC 3339. Defaults to now.")
@cluster_options
@output_option_of("text", "json", "junit", "markdown")
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
    given = InputOptions(files=files, plan=plan, release=release, cluster=cluster, templates=target.templates)
    when = tuple(CheckTime(time) for time in times) or BEFORE
    now = _time(at)
    live = bool(target.kubeconfig or target.context or not (files or plan or release or cluster))
    if live:
        looked = _look_at_cluster(given, target, ids, when, node, now)
    else:
        looked = _look_at_files(given, ids, when, node, now)
    return _tell(looked, now, output, live=live, everything=everything)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Looked:
    """The plan's name, empty without one, the answers, and the table of virtual machines, which is left out where
    single checks are selected."""

    plan: str
    report: CheckReport
    machines: MachineTable | None


def _look_at_files(
    given: InputOptions, ids: Sequence[str], when: Sequence[CheckTime], node: str | None, now: datetime
) -> _Looked:
    from reconcile.preflight.check_context import checks_of
    from reconcile.preflight.machines import machine_table
    from reconcile.preflight.on_inputs import check_inputs, given_in
    from reconcile.preflight.selecting import checks_named
    from renderer.cli.input_options import read_form

    inputs, tree = read_form(given)
    template_set = template_set_in(tree)
    checks = checks_named(checks_of(template_set.catalog), ids)
    plan, look = inputs.plan.body if inputs.plan else {}, given_in(inputs, template_set.catalog.kinds)
    return _Looked(
        plan=str(plan["metadata"]["name"]) if plan else "",
        report=check_inputs(inputs, look, template_set, checks, when, now, node),
        machines=None if ids else machine_table(look, plan),
    )


def _look_at_cluster(
    given: InputOptions, target: Target, ids: Sequence[str], when: Sequence[CheckTime], node: str | None, now: datetime
) -> _Looked:
    """The same for a cluster; a plan and a release may be given as files."""
    from reconcile.cli.connect import connect_to, template_set_of
    from reconcile.cli.parts import parts_on
    from reconcile.observe.facts import Unreadable
    from reconcile.observe.kept_fields import for_checks
    from reconcile.observe.snapshot import judge
    from reconcile.observe.source import DirectSource
    from reconcile.preflight.check_context import checks_of
    from reconcile.preflight.checking import run_checks
    from reconcile.preflight.machines import machine_table
    from reconcile.preflight.running_plan import SeldomLook
    from reconcile.preflight.selecting import checks_named, require_node
    from renderer.cli.input_options import read_form

    template_set = template_set_of(target.templates)
    checks = checks_named(checks_of(template_set.catalog), ids)
    inputs = read_form(given)[0] if given.names_inputs else None
    parts = parts_on(connect_to(target), template_set)
    release = inputs.release.body if inputs and inputs.release else None
    try:
        plan = inputs.plan.body if inputs and inputs.plan else _plan_there(parts, given.plan)
        context = _context_on(parts, template_set, plan, now, release)
    except Unreadable as error:
        raise Unreadable(dict.fromkeys((*error.problems, *_unreadable(parts.source, checks)))) from None
    require_node(node, context.names.nodes)

    def look_at(look: Look) -> _Looked:
        seldom = SeldomLook(look=look)
        return _Looked(
            plan=str(plan["metadata"]["name"]) if plan else "",
            report=run_checks(checks, seldom, context, when, node),
            machines=None if ids else machine_table(seldom, plan or {}),
        )

    source = DirectSource(parts.cluster, parts.kinds, for_checks)
    return judge(look_at, source, parts.readings).answer


def _context_on(
    parts: ReconcilerDeps, template_set: TemplateSet, plan: Body | None, now: datetime, release: Body | None = None
) -> CheckContext:
    """The context in which checks of this cluster run."""
    from reconcile.observe.facts import gather
    from reconcile.preflight.check_context import check_context

    objects = gather(parts.source, plan or {})
    return check_context(template_set, parts.schemas, now, plan=plan, release=release, objects=objects)


def _unreadable(source: Source, checks: Iterable[DeclaredCheck]) -> Iterator[Problem]:
    """All else that may not be read, so that one run names every missing rule."""
    from reconcile.observe.facts import refusals, unreadable
    from reconcile.preflight.looked_at import looked_at
    from reconcile.probes.look import Group, ReadFailure

    yield from refusals(source, {})
    for group in (need for need in looked_at(checks, ()) if isinstance(need, Group)):
        if isinstance(found := source.list(group), ReadFailure):
            yield unreadable(f"{group.kind} objects", found)


def _plan_there(parts: ReconcilerDeps, name: str | None) -> Body | None:
    """The plan of that name, or the one that has not ended; None where there is none. Raises `Problems`."""
    from reconcile.cli.parts import plan_named, plan_there
    from reconcile.loop.plan_round import PLANS

    if name is None and not parts.source.list(PLANS):
        return None
    return plan_there(parts, plan_named(parts, name))


def _tell(looked: _Looked, now: datetime, output: str, *, live: bool, everything: bool) -> ExitCode:
    from reconcile.report.preflight_report import (
        could_not_look,
        junit_lines,
        preflight_blocks,
        preflight_lines,
        preflight_model,
    )

    model = preflight_model(looked.report, looked.machines, plan=looked.plan, at=now, live=live)
    texts: Mapping[str, Callable[[Model], Iterable[str]]] = {
        "text": partial(preflight_lines, everything=everything),
        "junit": junit_lines,
    }
    markdown = partial(preflight_blocks, everything=everything)
    answer(PREFLIGHT_REPORT, model, output, texts.get(output, preflight_lines), markdown)
    if model["blocked"]:
        return ExitCode.NO
    return ExitCode.CLUSTER if could_not_look(model) else ExitCode.YES


def _time(text: str | None) -> datetime:
    """A day is its beginning, and a time without a zone is UTC. Raises `Problems`."""
    if text is None:
        return wall_clock()
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        message = f"--at: {text!r} is not a time"
        raise problem("InvalidTime", message, remedy="write it like 2027-01-31 or 2027-01-31T08:00:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def needs_on_cluster(parts: ReconcilerDeps, template_set: TemplateSet, plan: Body | None) -> tuple[Group | Ref, ...]:
    """All that the checks look at on this cluster, be the plan there or not."""
    from reconcile.observe.snapshot import judge
    from reconcile.preflight.check_context import checks_of
    from reconcile.preflight.checking import run_checks
    from reconcile.preflight.looked_at import looked_at

    checks = checks_of(template_set.catalog)
    context = _context_on(parts, template_set, plan, wall_clock())
    judged = judge(lambda look: run_checks(checks, look, context, BEFORE), parts.source, parts.readings)
    return looked_at(checks, judged.looked_at)
