"""Runs the checks that a gate's document carries, with the files that were reviewed instead of the image's."""

from __future__ import annotations

from datetime import datetime

from reconcile.gate.gate_wait import BeforeGates
from reconcile.gate.resolved_gates import CheckRun
from reconcile.observe.facts import Unreadable, gather
from reconcile.observe.readings import Readings
from reconcile.observe.snapshot import judge
from reconcile.observe.source import Source
from reconcile.preflight.check_context import check_context, checks_of
from reconcile.preflight.check_result import CheckOutcome, CheckResult
from reconcile.preflight.rounds import CheckRounds
from reconcile.probes.verdict import Verdict, unknown, waiting
from reconcile.schemas import Schemas
from renderer.assemble import TemplateSet
from renderer.catalog.template_tree import Template, TemplateTree
from renderer.model.check import CheckTime

_FOLDER = "preflight/"
_HOLDS = {CheckOutcome.BLOCKED: waiting, CheckOutcome.UNKNOWN: unknown}


def with_files(tree: TemplateTree, run: CheckRun) -> TemplateTree:
    """The tree with the catalogue of checks that was reviewed, and no other."""
    kept = {path: template for path, template in tree.items() if not path.startswith(_FOLDER)}
    given = {path: Template(text=text, shown=path, packaged=False) for path, text in run.files.items()}
    return dict(sorted((kept | given).items()))


def check_verdicts(
    run: CheckRun, template_set: TemplateSet, source: Source, readings: Readings, schemas: Schemas
) -> BeforeGates:
    """Judges the checks as the loop does: one that blocks is waited for, since what it found can be fixed; one
    that nobody here can ever answer, such as what only hosts know, is not.

    `source` needs to keep no more than checks read. Nothing is kept once they have judged.
    """
    checks = checks_of(template_set.catalog)

    def verdicts(now: datetime) -> tuple[Verdict, ...]:
        try:
            objects = gather(source, dict(run.plan))
        except Unreadable as error:
            return tuple(unknown(problem.message) for problem in error.problems)
        context = check_context(template_set, schemas, now, plan=run.plan, release=run.release, objects=objects)
        rounds = CheckRounds(checks, context, (CheckTime(run.when),))
        report = judge(rounds.report, source, readings).answer
        return tuple(_HOLDS[result.outcome](_line(result)) for result in report.results if result.holds)

    return verdicts


def _line(result: CheckResult) -> str:
    return f"check {result.check.id}: {result.reason}"
