"""Applies one phase once and waits for its gates. No status is written: it is for an upgrade that is done by hand."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reconcile.cli.connect import Target, wall_clock
from reconcile.cli.live import Live, live_of
from reconcile.cli.screen import Screen
from renderer.errors import ExitCode, Problems, problem

if TYPE_CHECKING:
    from reconcile.act.applied import Applied
    from reconcile.probes.verdict import Verdict
    from renderer.documents import Inputs
    from renderer.model.rendered import Manifest, RenderedPhase, RenderedStep

_SOON, _SELDOM = 0.2, 2.0
"""Seconds between two looks: soon after the write, and in the end."""


def apply_phase(target: Target, inputs: Inputs | None, name: str | None, phase_name: str) -> ExitCode:
    """Steps in order; each is written, then its gates are waited for. Raises `Problems` where a write is refused."""
    live = live_of(target, inputs, name)
    phase = live.phase(phase_name)
    if not live.exists:
        raise problem("NoSuchPlan", f"UpgradePlan {live.rendered.plan} is not in the cluster", remedy="create it first")
    _must_be_whole(phase)
    steps = [step for step in phase.steps if step.skipped is None]
    with Screen(sys.stdout) as screen:
        course = _Course(screen)
        try:
            opened = all(_write(live, step, course) and _wait(live, step, course) for step in steps)
        except KeyboardInterrupt:
            done = ", ".join(course.applied) or "nothing"
            course.tell(f"stopped; applied so far: {done}; run the same command again to go on")
            return ExitCode.NO
        course.tell(f"{phase_name}: {'done' if opened else 'failed'}")
    return ExitCode.YES if opened else ExitCode.NO


class _Course:
    """What has been done so far, and is said of it."""

    def __init__(self, screen: Screen) -> None:
        self.applied: list[str] = []
        self._said: list[str] = []
        self._screen = screen

    def tell(self, *lines: str) -> None:
        self._said += lines
        self._screen.show(self._said, lines)

    def waits(self, lines: Sequence[str], seconds: float) -> None:
        self._screen.show([*self._said, *lines, f"  for {seconds:.0f} s"], lines, f"{wall_clock():%H:%M:%S} ")


def _must_be_whole(phase: RenderedPhase) -> None:
    """A phase that has steps which only the loop can take is refused before its first write."""
    loop_only = [step.id for step in phase.steps if step.skipped is None and (step.step.trigger or step.step.captures)]
    pending = {item.input: item.remedy for item in (*phase.pending, *(i for step in phase.steps for i in step.pending))}
    if pending:
        raise problem("MissingInput", f"not known yet: {', '.join(pending)}", remedy="; ".join(pending.values()))
    if loop_only:
        message = f"{loop_only[0]} answers to what happens in the cluster, which only the loop can"
        raise problem("LoopOnly", message, remedy="leave --phase out: `upgradeplan apply` runs the whole plan")


def _write(live: Live, step: RenderedStep, course: _Course) -> bool:
    """Always true: what cannot be written is raised."""
    for manifest in step.manifests:
        applied = _applied(live, manifest)
        if isinstance(applied, str):
            course.tell(f"{manifest.ref}: {applied}")
            continue
        if applied.problem is not None:
            raise Problems([applied.problem], ExitCode.CLUSTER)
        course.tell(f"{manifest.ref}: {applied.outcome}", *(f"warning: {text}" for text in applied.warnings))
        course.applied.append(str(manifest.ref))
    return True


def _applied(live: Live, manifest: Manifest) -> Applied | str:
    """What came of one manifest, or why nothing is to be written."""
    from reconcile.borrow.take import plan_take
    from reconcile.probes.look import Unseen
    from renderer.model.phase import Borrowed

    body = live.parts.source.get(manifest.ref)
    if isinstance(body, Unseen):
        raise problem("Unreadable", f"{manifest.ref} cannot be read: {body.why}")
    if not isinstance(manifest.spec, Borrowed):
        return live.writer().own(manifest, body)
    taking = plan_take(manifest.body, manifest.spec, body)
    return taking.because if taking.patch is None else live.writer().take(manifest, taking.patch)


def _wait(live: Live, step: RenderedStep, course: _Course) -> bool:
    """Whether the gates have opened; False where one has failed."""
    began, pause = time.monotonic(), _SOON
    while True:
        verdicts = _verdicts(live, step)
        if all(verdict.passed for verdict in verdicts):
            return True
        reasons = dict.fromkeys(verdict.reason for verdict in verdicts if not verdict.passed)
        course.waits([f"{step.id} waits: {reason}" for reason in reasons], time.monotonic() - began)
        if any(verdict.outcome == "failed" for verdict in verdicts):
            return False
        time.sleep(pause)
        pause = min(pause * 1.5, _SELDOM)


def _verdicts(live: Live, step: RenderedStep) -> list[Verdict]:
    from reconcile.decide.captures import refs_by_template
    from reconcile.observe.snapshot import take
    from reconcile.probes.evaluate import evaluate
    from reconcile.probes.look import Scope
    from reconcile.probes.needs import needs

    scope = Scope(kinds=live.parts.kinds, now=wall_clock(), manifests=refs_by_template(step))
    wanted = [need for gate in step.step.gates for need in needs(gate.probe, scope)]
    snapshot = take(wanted, live.parts.source, live.parts.readings)
    return [evaluate(gate.probe, snapshot, scope) for gate in step.step.gates]
