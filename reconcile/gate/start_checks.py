"""Runs the checks that a gate's document carries, with the files that were reviewed instead of the image's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from reconcile.gate.resolved_gates import CheckRun
from reconcile.observe.facts import gather
from reconcile.observe.source import Source
from reconcile.preflight.check_context import check_context, checks_of
from reconcile.preflight.check_result import CheckOutcome, CheckResult
from reconcile.preflight.checking import run_checks
from reconcile.probes.look import Look
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
    run: CheckRun, template_set: TemplateSet, source: Source, schemas: Schemas
) -> Callable[[Look, datetime], tuple[Verdict, ...]]:
    """Judges the checks as the loop does: one that blocks is waited for, since somebody can mend what it found; one
    that nobody here can ever answer, such as what only hosts know, is not."""
    checks = checks_of(template_set.catalog)

    def verdicts(look: Look, now: datetime) -> tuple[Verdict, ...]:
        objects = gather(source, dict(run.plan))
        context = check_context(template_set, schemas, now, plan=run.plan, release=run.release, objects=objects)
        report = run_checks(checks, look, context, (CheckTime(run.when),))
        return tuple(_HOLDS[result.outcome](_line(result)) for result in report.results if result.holds)

    return verdicts


def _line(result: CheckResult) -> str:
    return f"check {result.check.id}: {result.reason}"
