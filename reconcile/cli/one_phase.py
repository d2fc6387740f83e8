"""Applies one phase once and waits for its checks and gates: for an upgrade that is done by hand.

Of the status only what is borrowed is written, so that the loop or an abort gives it back, and what this and the
earlier phases record of the cluster: which release ran before cannot be read any more once that has changed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reconcile.act.applied import WROTE, Applied
from reconcile.act.status import write_status
from reconcile.cli.connect import Target, wall_clock
from reconcile.cli.live import Live, live_of
from reconcile.cli.one_step import Stepper
from reconcile.cli.parts import require_fitting_api
from reconcile.cli.screen import Screen, newest_lines
from reconcile.cli.step_checks import CheckedByHand, has_begun
from reconcile.cluster.errors import Away, Throttled
from reconcile.decide.probing import refs_by_template
from reconcile.objects import deletion_timestamp
from reconcile.observe.snapshot import judge
from reconcile.probes.evaluate import evaluate
from reconcile.probes.look import ProbeContext, ReadFailure
from reconcile.probes.verdict import ProbeResult
from reconcile.status.plan import key_of
from reconcile.status.plan_body import status_of
from renderer.documents import Inputs
from renderer.errors import ExitCode, Problems, problem
from renderer.model.ref import ref_of
from renderer.model.rendered import RenderedPhase, RenderedStep

_SOON, _SELDOM = 0.2, 2.0
"""Seconds between two looks: soon after the write, and in the end."""


def apply_phase(target: Target, inputs: Inputs | None, name: str | None, phase_name: str) -> ExitCode:
    """Steps in order; each is written, then its gates are waited for. Raises `Problems` where a write is refused."""
    live = live_of(target, inputs, name)
    phase = live.phase(phase_name)
    if not live.exists:
        raise problem("NoSuchPlan", f"UpgradePlan {live.rendered.plan} not found", remedy="create it first")
    require_fitting_api(live.parts)
    _must_be_whole(phase)
    with Screen(sys.stdout) as screen:
        course = _Course(screen)
        try:
            course.until_free(phase_name, lambda: _note_facts(live, phase))
            opened = all(_take(live, phase, step, course) for step in phase.steps if step.skipped is None)
        except (KeyboardInterrupt, Problems):
            done = ", ".join(course.applied) or "nothing"
            course.report(f"stopped; applied so far: {done}; run the same command again to continue")
            raise
        course.report(f"{phase_name}: {'done' if opened else 'failed'}")
    return ExitCode.YES if opened else ExitCode.NO


@dataclass(frozen=True, slots=True, kw_only=True)
class _PhaseState:
    """The state of a step: what it waits for, if anything; `failed`: it will never continue."""

    waits: Sequence[str] = ()
    failed: bool = False


class _Course:
    """The record and the output of what has been done so far."""

    def __init__(self, screen: Screen) -> None:
        self.applied: list[str] = []
        self._said: list[str] = []
        self._screen = screen

    def report(self, *lines: str) -> None:
        self._said += lines
        self._screen.show(newest_lines(self._said), lines)

    def wrote(self, applied: Applied) -> None:
        """Tells what has come of a manifest."""
        because = [applied.because] if applied.because else []
        self.report(f"{applied.ref}: {applied.outcome}", *because, *(f"warning: {text}" for text in applied.warnings))
        if applied.outcome in WROTE:
            self.applied.append(str(applied.ref))

    def until_free(self, step: str, look: Callable[[], _PhaseState]) -> bool:
        """Looks until nothing keeps the step any more; False where it has failed.

        An API server that is away is waited for as well: it goes away during its own upgrade.
        """
        began, pause = time.monotonic(), _SOON
        while True:
            try:
                state = look()
            except (Away, Throttled) as error:
                state = _PhaseState(waits=[error.problem.message])
            if not state.waits:
                return True
            self._waits([f"{step} is waiting: {reason}" for reason in state.waits], time.monotonic() - began)
            if state.failed:
                return False
            time.sleep(pause)
            pause = min(pause * 1.5, _SELDOM)

    def _waits(self, lines: Sequence[str], seconds: float) -> None:
        shown = newest_lines([*self._said, *lines, f"  for {seconds:.0f} s"])
        self._screen.show(shown, lines, f"{wall_clock():%H:%M:%S} ")


def _must_be_whole(phase: RenderedPhase) -> None:
    """A phase that has steps which only the loop can take is refused before its first write."""
    loop_only = [step.id for step in phase.steps if step.skipped is None and (step.step.trigger or step.step.captures)]
    pending = {item.input: item.remedy for item in (*phase.pending, *(i for step in phase.steps for i in step.pending))}
    if pending:
        raise problem("MissingInput", f"not known yet: {', '.join(pending)}", remedy="; ".join(pending.values()))
    if loop_only:
        message = f"{loop_only[0]} reacts to events in the cluster, so it cannot be applied alone"
        raise problem("LoopOnly", message, remedy="run the whole plan: upgradeplan apply without --phase")


def _note_facts(live: Live, phase: RenderedPhase) -> _PhaseState:
    """Writes what the steps up to this phase record into the plan's status, unless it is there."""
    ref, parts = ref_of(live.plan), live.parts
    plan = parts.source.get(ref)
    if plan is None or isinstance(plan, ReadFailure) or deletion_timestamp(plan):
        return _PhaseState()  # set by the first step
    before = status = status_of(plan)
    phases = live.rendered.phases
    for step in (step for earlier in phases[: phases.index(phase) + 1] for step in earlier.steps):
        for path, value in step.records:
            if status.field(path) is None:
                status = status.with_field(path, value)
    written = write_status(parts.cluster, parts.kinds, plan, before, status)
    return _PhaseState(waits=[] if written else [f"{ref} has changed since it was read"])


def _take(live: Live, phase: RenderedPhase, step: RenderedStep, course: _Course) -> bool:
    """True if the step's gates have opened, once all that it writes is written. What the loop has done is not done
    again: its Job may be gone by now."""
    if status_of(live.plan).is_over(key_of(step)):
        course.report(f"{step.id}: already done, according to the plan's status")
        return True
    if step.step.checks and not has_begun(live, phase) and not _is_let_in(CheckedByHand(live, step), step, course):
        return False
    stepper = Stepper(live, phase, step, course.wrote)

    def write() -> _PhaseState:
        return _PhaseState(waits=stepper.write())

    return course.until_free(step.id, write) and course.until_free(step.id, lambda: _gates(live, step))


def _is_let_in(checks: CheckedByHand, step: RenderedStep, course: _Course) -> bool:
    """True once no pre-flight check keeps the step; False if one has measured what ends the upgrade."""

    def look() -> _PhaseState:
        waits = checks.waits()
        return _PhaseState(waits=waits, failed=checks.failed)

    return course.until_free(step.id, look)


def _gates(live: Live, step: RenderedStep) -> _PhaseState:
    parts = live.parts
    context = ProbeContext(
        kinds=parts.kinds,
        schemas=parts.schemas,
        now=wall_clock(),
        redactor=parts.rendering.redactor,
        manifests=refs_by_template(step),
    )
    verdicts = judge(
        lambda look: [evaluate(gate.probe, look, context) for gate in step.step.gates], parts.source, parts.readings
    ).answer
    reasons = dict.fromkeys(verdict.reason for verdict in verdicts if not verdict.passed)
    return _PhaseState(waits=tuple(reasons), failed=any(verdict.outcome is ProbeResult.FAILED for verdict in verdicts))
