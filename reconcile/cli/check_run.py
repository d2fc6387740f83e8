"""Carries out checks for a command, on files or on a cluster: `preflight` asks before an upgrade, `verify` after it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import click

from reconcile.cli.catalogue import template_set_in
from reconcile.cli.connect import Command, Target, wall_clock
from renderer.cli.answer import Model, answer, warn
from renderer.cli.input_options import InputOptions
from renderer.errors import ExitCode, problem
from renderer.model.check import CheckTime
from renderer.model.document_type import DocumentType

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.observe.source import Source
    from reconcile.preflight.check_result import CheckReport
    from reconcile.preflight.machines import MachineTable
    from reconcile.probes.look import Look
    from reconcile.report.preflight_report import CheckWords
    from renderer.catalog.checks import DeclaredCheck
    from renderer.errors import Problem
    from renderer.model.ref import Body

FORMATS = ("text", "json", "junit", "markdown")

_OPTIONS = (
    click.option("--check", "ids", multiple=True, metavar="ID", help="Run only this check. Repeatable."),
    click.option("--all", "everything", is_flag=True, help="Show the checks that have passed as well."),
    click.option("--at", metavar="TIME", help="Check at this time, 2027-01-31 or RFC 3339. Defaults to now."),
)


def check_options(command: Command) -> Command:
    """Adds the options that all commands have that carry out checks."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckQuestion:
    """A question to checks: on what, by which of them, and when. No `ids`: all; no `node`: each. `machines`: the table
    of virtual machines is shown as well."""

    given: InputOptions
    target: Target
    ids: Sequence[str]
    when: Sequence[CheckTime]
    node: str | None = None
    now: datetime
    machines: bool = False

    @property
    def is_live(self) -> bool:
        """True if a cluster is looked at, and no files of it."""
        return bool(self.target.kubeconfig or self.target.context or not self.given.names_inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAnswers:
    """The plan's name, empty without one, the answers, and the table of virtual machines where it is shown."""

    plan: str
    report: CheckReport
    machines: MachineTable | None


def answers_to(asked: CheckQuestion) -> CheckAnswers:
    """Raises `Problems` for what cannot be read, and for names that nothing has."""
    return _look_at_cluster(asked) if asked.is_live else _look_at_files(asked)


def _look_at_files(asked: CheckQuestion) -> CheckAnswers:
    from reconcile.preflight.check_context import checks_of
    from reconcile.preflight.machines import machine_table
    from reconcile.preflight.on_inputs import check_inputs, given_in
    from reconcile.preflight.selecting import checks_at
    from renderer.cli.input_options import read_form

    inputs, tree = read_form(asked.given)
    template_set = template_set_in(tree)
    checks = checks_at(checks_of(template_set.catalog), asked.ids, asked.when)
    plan, look = inputs.plan.body if inputs.plan else {}, given_in(inputs, template_set.catalog.kinds)
    return CheckAnswers(
        plan=str(plan["metadata"]["name"]) if plan else "",
        report=check_inputs(inputs, look, template_set, checks, asked.when, asked.now, asked.node),
        machines=machine_table(look, plan) if asked.machines else None,
    )


def _look_at_cluster(asked: CheckQuestion) -> CheckAnswers:
    """The same for a cluster; a plan and a release may be given as files."""
    from reconcile.cli.connect import connect_to, template_set_of
    from reconcile.cli.parts import parts_on
    from reconcile.observe.facts import Unreadable, readable_and_refused
    from reconcile.observe.kept_fields import for_checks
    from reconcile.observe.snapshot import judge
    from reconcile.observe.source import DirectSource
    from reconcile.preflight.check_context import check_context, checks_of
    from reconcile.preflight.machines import machine_table
    from reconcile.preflight.rounds import CheckRounds
    from reconcile.preflight.running_plan import SeldomLook
    from reconcile.preflight.selecting import checks_at, require_node
    from renderer.cli.input_options import read_form

    template_set = template_set_of(asked.target.templates)
    checks = checks_at(checks_of(template_set.catalog), asked.ids, asked.when)
    inputs = read_form(asked.given)[0] if asked.given.names_inputs else None
    parts = parts_on(connect_to(asked.target), template_set)
    release = inputs.release.body if inputs and inputs.release else None
    try:
        plan = inputs.plan.body if inputs and inputs.plan else _plan_there(parts, asked.given.plan or asked.given.name)
    except Unreadable as error:  # without it nobody knows which risks are accepted
        raise Unreadable(dict.fromkeys((*error.problems, *_unreadable(parts.source, checks)))) from None
    found, refused = readable_and_refused(parts.source, plan or {})
    context = check_context(template_set, parts.schemas, asked.now, plan=plan, release=release, objects=found)
    if asked.node and refused:
        raise Unreadable(refused)
    require_node(asked.node, context.names.nodes)
    warn(refused)
    rounds = CheckRounds(checks, context, asked.when, asked.node)

    def look_at(look: Look) -> CheckAnswers:
        seldom = SeldomLook(look=look)
        return CheckAnswers(
            plan=str(plan["metadata"]["name"]) if plan else "",
            report=rounds.report(seldom),
            machines=machine_table(seldom, plan or {}) if asked.machines else None,
        )

    source = DirectSource(parts.cluster, parts.kinds, for_checks)
    return judge(look_at, source, parts.readings).answer


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
    """The plan of that name, or the one that has not ended; None if there is none. Raises `Problems`."""
    from reconcile.cli.parts import plan_named, plan_there
    from reconcile.loop.plan_round import PLANS

    if name is None and not parts.source.list(PLANS):
        return None
    return plan_there(parts, plan_named(parts, name))


def show_answers(
    answers: CheckAnswers, asked: CheckQuestion, of: DocumentType, words: CheckWords, output: str, *, everything: bool
) -> ExitCode:
    """Prints the answers. 1: something blocks; 3: nothing does, and something could not be looked at."""
    from reconcile.report.preflight_report import (
        could_not_look,
        junit_lines,
        preflight_blocks,
        preflight_lines,
        preflight_model,
    )

    model = preflight_model(
        answers.report,
        answers.machines,
        plan=answers.plan,
        at=asked.now,
        live=asked.is_live,
        words=words,
        notes=not asked.ids,
    )
    texts: Mapping[str, Callable[[Model], Iterable[str]]] = {
        "text": partial(preflight_lines, everything=everything),
        "junit": partial(junit_lines, words=words),
    }
    markdown = partial(preflight_blocks, words=words, everything=everything)
    answer(of, model, output, texts.get(output, preflight_lines), markdown)
    if model["blocked"]:
        return ExitCode.NO
    return ExitCode.CLUSTER if could_not_look(model) else ExitCode.YES


def time_from(text: str | None) -> datetime:
    """A day is its beginning, and a time without a zone is UTC. Raises `Problems`."""
    if text is None:
        return wall_clock()
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        message = f"--at: {text!r} is not a time"
        raise problem("InvalidTime", message, remedy="write it like 2027-01-31 or 2027-01-31T08:00:00Z") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
