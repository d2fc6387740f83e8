"""Judges an UpgradePlan that is about to be created or changed by the checks of the catalogue.

CREATE asks every check of that time; UPDATE only those about a field of the spec that changes, and only of what is new
in it, so that what has been let in before never stands in the way of a correction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock

from reconcile import objects
from reconcile.admission.answer import FailedReads, internal_error, judged
from reconcile.admission.review import ADMITTED, PLANS, AdmissionRequest, Judgement
from reconcile.observe.facts import what_is_readable
from reconcile.observe.readings import Readings
from reconcile.observe.snapshot import judge
from reconcile.observe.source import Source
from reconcile.observe.timed import TimedSource
from reconcile.preflight.check_context import check_context
from reconcile.preflight.check_result import CheckOutcome, CheckReport, CheckResult
from reconcile.preflight.denied_field import named_entry
from reconcile.preflight.looked_at import looked_at
from reconcile.preflight.rounds import CheckRounds
from reconcile.probes.look import Group
from reconcile.schemas import Schemas
from renderer.assemble import TemplateSet
from renderer.catalog.checks import DeclaredCheck
from renderer.model.check import CheckTime
from renderer.model.path import look_up, parse_path
from renderer.model.ref import Body

_WHEN = (CheckTime.CREATE,)
_TURN = 0.5
"""The part of the time that a plan may wait until another has been judged; it then has as much again."""
_BUSY = "another plan is being checked, and that did not finish in time; try again"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeConfig:
    """The parts that judging needs. `pool` does the reads of all requests together, until `stop`. `template_set` is for
    this alone: templates are used by one thread at a time. `clock` is monotonic, `now` has a time zone."""

    source: Source
    pool: Executor
    readings: Readings
    template_set: TemplateSet
    checks: Sequence[DeclaredCheck]
    schemas: Schemas
    clock: Callable[[], float]
    now: Callable[[], datetime]


class AdmissionJudge:
    """Answers requests, from any thread."""

    def __init__(self, config: JudgeConfig) -> None:
        self._config = config
        self._checks = tuple(item for item in config.checks if CheckTime.CREATE in item.check.when)
        self._likely = _groups(looked_at(self._checks, ()))
        self._one_at_a_time = Lock()
        self._creating = Lock()

    def judge(self, request: AdmissionRequest, seconds: float) -> Judgement:
        """`seconds` are what there is for the answer. Raises only for a bug in this program."""
        if request.resource != PLANS:
            return Judgement(warnings=(f"upgradeplan checks {PLANS} only, not {request.resource}",))
        if request.operation == "CREATE":
            return self._created(request.plan, seconds)
        return self._changed(request, seconds) if request.operation == "UPDATE" else ADMITTED

    def stop(self) -> None:
        self._config.pool.shutdown(wait=False, cancel_futures=True)

    def _created(self, plan: Body, seconds: float) -> Judgement:
        """One plan after the other: the lists of a large cluster are to be in memory once."""
        if not self._creating.acquire(blocking=False):
            seconds *= _TURN
            if not self._creating.acquire(timeout=seconds):
                return Judgement(causes=(internal_error(_BUSY),))
        try:
            report, failed = self._report(self._checks, plan, seconds, self._likely)
        finally:
            self._creating.release()
        return judged(report, plan, failed)

    def _changed(self, request: AdmissionRequest, seconds: float) -> Judgement:
        plan, old = request.plan, request.old
        checks = [item for item in self._checks if _has_changed(item, plan, old)]
        if not checks:
            return ADMITTED
        report, failed = self._report(checks, plan, seconds, _groups(looked_at(checks, ())))
        results = tuple(_of_what_is_new(result, plan, old) for result in report.results)
        return judged(replace(report, results=results), plan, failed)

    def _report(
        self, checks: Sequence[DeclaredCheck], plan: Body, seconds: float, likely: Iterable[Group]
    ) -> tuple[CheckReport, FailedReads]:
        """The answers, and what could not be read for them. Reads go on side by side, checks one after the other."""
        config = self._config
        source = TimedSource(config.source, config.pool, seconds, config.clock)
        source.begin(likely)
        try:
            there = what_is_readable(source, plan)
            of_names = source.failures
            for group in likely:  # before the lock is taken
                source.list(group)
            with self._one_at_a_time:
                context = check_context(config.template_set, config.schemas, config.now(), plan=plan, objects=there)
                rounds = CheckRounds(checks, context, _WHEN)
                judgement = judge(rounds.report, source, config.readings, likely)
        finally:
            source.give_up()
        if checks is self._checks:
            self._likely = _groups((*self._likely, *judgement.looked_at))
        return judgement.answer, FailedReads(of_names=of_names, of_checks=source.failures)


def _groups(needs: Iterable[object]) -> tuple[Group, ...]:
    """The groups that no other one includes; objects are other ones for each plan."""
    found = dict.fromkeys(need for need in needs if isinstance(need, Group))
    return tuple(group for group in found if not any(other.includes(group) for other in found if other != group))


def _has_changed(declared: DeclaredCheck, plan: Body, old: Body) -> bool:
    """True if the check's finding would be about a field of the spec that is being changed."""
    path = parse_path(declared.check.denial.field)
    return path[0] == "spec" and len(path) > 1 and look_up(plan, path) != look_up(old, path)


def _of_what_is_new(result: CheckResult, plan: Body, old: Body) -> CheckResult:
    """Without findings about entries of a list that were there before."""
    kept = objects.items(look_up(old, parse_path(result.check.denial.field)))
    before = set(map(str, kept)) if result.check.denial.each else set()
    findings = tuple(
        item
        for item in result.findings
        if named_entry(result.check, item, plan) is None or item.ref is None or item.ref.name not in before
    )
    passed = bool(result.findings) and not findings
    return replace(result, findings=findings, outcome=CheckOutcome.PASSED if passed else result.outcome)
