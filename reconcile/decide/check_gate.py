"""Decides whether pre-flight checks let a step begin, and reports the findings and the remedy of each that does not.

A check is carried out when its step's turn comes, and again once something that it looked at has changed. Whatever the
plan accepts is recorded in its status, and in an event, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from reconcile.decide.builder import DecisionBuilder, WaitRequest
from reconcile.decide.decision import BlockingCheck
from reconcile.decide.decision_cache import CarriedOut
from reconcile.preflight.accepting import how_to_accept
from reconcile.preflight.check_context import CheckContext
from reconcile.preflight.check_result import CheckOutcome, CheckResult
from reconcile.preflight.checking import run_check
from reconcile.preflight.running_plan import LivePreflight, SeldomLook, judged_at
from reconcile.status.times import time_text
from renderer.catalog.checks import DeclaredCheck
from renderer.model.check import CheckTime
from renderer.model.phase import StepChecks
from renderer.model.rendered import RenderedStep

ACCEPTED_RISKS = "acceptedRisks"
"""The field of the status that has every risk that was accepted."""
BLOCKED, WARNED, PASSED, ACCEPTED = "PreflightBlocked", "PreflightWarned", "PreflightPassed", "RiskAccepted"
_LONGEST = 24_000
"""Characters of all offenders together: a condition has room for 32,768."""
_TOLD = 900
"""The same in an event, which has room for 1,024."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedStep:
    """`ends` is why the plan ends and `remedies` what to do then, `waits` whether the step does not begin yet."""

    ends: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()
    waits: bool = False


_CLEAR = CheckedStep()


def carry_out(builder: DecisionBuilder, item: RenderedStep) -> CheckedStep:
    """Carries out the checks of a step that is about to begin."""
    checks, given = item.step.checks, builder.observation.preflight
    if checks is None or given is None:
        return _CLEAR
    builder.saw_others = True
    results = tuple(results_of(builder, item.id, checks.when, item.step.node, given()))
    _record_accepted(builder, results, checks.when)
    ending = [result for result in results if checks.when is CheckTime.START and any(_proofs(result))]
    if ending:
        remedies = dict.fromkeys(text for result in ending for text in (*remedies_of(result), _way_on(builder, result)))
        return CheckedStep(ends=tuple(chain(*map(_proofs, ending))), remedies=tuple(remedies))
    kept = [result for result in results if result.holds]
    if not kept:
        _tell_passed(builder, item, checks, results)
        return _CLEAR
    _wait_for(builder, item, checks, kept)
    return CheckedStep(waits=True)


# ------------------------------------------------------------------------------------------------------ carrying out


def results_of(
    builder: DecisionBuilder, place: str, when: CheckTime, node: str | None, given: LivePreflight
) -> Iterator[CheckResult]:
    """The answers of all checks of this time, but of those that settle after an upgrade. `place` tells them from those
    that are carried out elsewhere."""
    made: list[CheckContext] = []
    for declared in given.checks():
        if when in declared.check.when and not (when is CheckTime.AFTER and declared.check.settles):
            yield _result(builder, place, when, node, declared, given, made)


def _result(
    builder: DecisionBuilder,
    at: str,
    when: CheckTime,
    node: str | None,
    declared: DeclaredCheck,
    given: LivePreflight,
    made: list[CheckContext],
) -> CheckResult:
    """As it came out before, if all that it was made from is the same. `made` gets the context once one is needed."""
    place, now = (at, declared.check.id), judged_at(builder.now)
    inputs, look = (given.inputs, now, declared), builder.observation.look
    known = builder.cache.checks.get(place)
    if known is not None and known.inputs == inputs and known.look.on(look).answers_as_before():
        return known.result
    if not made:
        made.append(given.context(now))
    seldom = SeldomLook(look=look)
    result = run_check(declared, seldom, made[0], (when,), node)
    builder.cache.checks[place] = CarriedOut(inputs=inputs, look=seldom, result=result)
    return result


def _way_on(builder: DecisionBuilder, result: CheckResult) -> str:
    """Names what lets a plan begin after all that the check has ended."""
    name = builder.observation.plan["metadata"]["name"]
    return f"or accept the risk: {how_to_accept(result.check)}; then upgradeplan retry {name}"


def _proofs(result: CheckResult) -> Iterator[str]:
    """The findings of a check that ends a plan when it starts, as far as they were measured."""
    if result.check.terminal and result.outcome is CheckOutcome.BLOCKED:
        yield from (finding.proof for finding in result.findings if finding.proof)


# ----------------------------------------------------------------------------------------------------------- telling


def _wait_for(builder: DecisionBuilder, item: RenderedStep, checks: StepChecks, kept: Sequence[CheckResult]) -> None:
    room, news = _LONGEST // len(kept), []
    for result in kept:
        what = f"{_prefix(item)}{result.check.id} {result.outcome}"
        if result.outcome is CheckOutcome.BLOCKED and what not in builder.status.waiting and not checks.patient:
            news.append(result)
        wait = WaitRequest(
            text=_text(result, room),
            step=item.id,
            node=item.step.node,
            since=builder.waiting_since(what),
            limit=None if result.check.patient else checks.slow_after,
            unknown=result.outcome is CheckOutcome.UNKNOWN,
            refs=(*(finding.ref for finding in result.findings if finding.ref), *result.undecided),
            check=_blocking(result),
        )
        if checks.patient or wait.unknown:
            builder.ask(wait)
        else:
            builder.ask_operator(wait)
    builder.progress = f"pre-flight checks block the upgrade{_of(item)}: {', '.join(r.check.id for r in kept)}"
    if news:
        builder.event("Warning", BLOCKED, f"pre-flight checks block the upgrade{_of(item)}: {in_an_event(news)}")


def _tell_passed(
    builder: DecisionBuilder, item: RenderedStep, checks: StepChecks, results: Iterable[CheckResult]
) -> None:
    if not checks.patient and any(what.startswith(_prefix(item)) for what in builder.status.waiting):
        builder.event("Normal", PASSED, f"no pre-flight check blocks the upgrade{_of(item)} any more")
    if warned := [result for result in results if result.outcome is CheckOutcome.WARNED or _is_noted(result)]:
        builder.event("Warning", WARNED, f"pre-flight checks{_of(item)}: {in_an_event(warned)}")


def _is_noted(result: CheckResult) -> bool:
    """True if a check passes, and not all that it asked for could be seen."""
    return result.outcome is CheckOutcome.PASSED and bool(result.notes)


def _prefix(item: RenderedStep) -> str:
    return f"{item.id}: check "


def _of(item: RenderedStep) -> str:
    return f" of {item.step.node}" if item.step.node else ""


def _text(result: CheckResult, room: int) -> str:
    """The check, what it found or could not see, what to do, and what accepts the risk."""
    verb = "could not be evaluated" if result.outcome is CheckOutcome.UNKNOWN else "blocks"
    accept = how_to_accept(result.check)
    parts = (
        f"check {result.check.id} {verb}: {offenders_of(result, room)}",
        _joined(remedies_of(result), 0),
        f"or accept the risk: {accept}" if accept else "",
    )
    return "; ".join(filter(None, parts))


def in_an_event(results: Sequence[CheckResult]) -> str:
    """The checks with their offenders, as far as an event has room for them."""
    room = _TOLD // len(results)
    return "; ".join(f"{result.check.id}: {offenders_of(result, room)}" for result in results)


def offenders_of(result: CheckResult, room: int) -> str:
    return _joined(_says(result), room) or result.reason


def _says(result: CheckResult) -> tuple[str, ...]:
    if result.outcome is CheckOutcome.UNKNOWN:
        return tuple(dict.fromkeys(failure.why for failure in result.read_failures))
    return tuple(dict.fromkeys(finding.text for finding in result.findings)) or result.notes


def remedies_of(result: CheckResult) -> tuple[str, ...]:
    if result.outcome is CheckOutcome.UNKNOWN:
        return tuple(dict.fromkeys(failure.remedy for failure in result.read_failures if failure.remedy))
    return tuple(dict.fromkeys(finding.remedy for finding in result.findings))


def _blocking(result: CheckResult) -> BlockingCheck:
    return BlockingCheck(
        id=result.check.id,
        title=result.check.title,
        found=_says(result) or (result.reason,),
        remedies=remedies_of(result),
        accept=how_to_accept(result.check),
    )


def _joined(texts: Sequence[str], room: int) -> str:
    """As many as there is room for, the first in any case, and the number of the others."""
    shown, length = 0, 0
    for text in texts:
        length += len(text) + 2
        if shown and length > room:
            break
        shown += 1
    more = [f"and {len(texts) - shown} more"] if shown < len(texts) else []
    return "; ".join([*texts[:shown], *more])


# --------------------------------------------------------------------------------------------------------- accepting


def _record_accepted(builder: DecisionBuilder, results: Iterable[CheckResult], when: CheckTime) -> None:
    """Adds each acceptance to the status and tells it, unless that was done before."""
    recorded: tuple[Mapping[str, Any], ...] = tuple(builder.status.field(ACCEPTED_RISKS) or ())
    known = {(entry.get("check"), entry.get("by"), entry.get("value")) for entry in recorded}
    for result in results:
        if (accepted := result.accepted) is None or (result.check.id, accepted.by, accepted.value) in known:
            continue
        entry = {
            "check": result.check.id,
            "by": accepted.by,
            "value": accepted.value,
            "when": str(when),
            "time": time_text(builder.now),
        }
        recorded = (*recorded, entry)
        builder.status = builder.status.with_field(ACCEPTED_RISKS, list(recorded))
        message = (
            f'risk {result.check.id} is accepted by {accepted.by}: "{accepted.value}": {offenders_of(result, _TOLD)}'
        )
        builder.event("Warning", ACCEPTED, message[:_TOLD])
