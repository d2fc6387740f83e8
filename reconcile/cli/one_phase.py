"""Applies one phase once and waits for its gates. No status is written: it is for an upgrade that is done by hand."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from reconcile.cli.connect import Target, wall_clock
from reconcile.cli.live import Live, live_of
from renderer.cli.answer import say
from renderer.errors import ExitCode, Problems, problem

if TYPE_CHECKING:
    from reconcile.probes.verdict import Verdict
    from renderer.documents import Inputs
    from renderer.model.rendered import RenderedPhase, RenderedStep

_EVERY = 2.0


def apply_phase(target: Target, inputs: Inputs | None, name: str | None, phase_name: str) -> ExitCode:
    """Steps in order; each is written, then its gates are waited for. Raises `Problems` where a write is refused."""
    live = live_of(target, inputs, name)
    phase = live.phase(phase_name)
    if not live.exists:
        raise problem("NoSuchPlan", f"UpgradePlan {live.rendered.plan} is not in the cluster", remedy="create it first")
    _must_be_whole(phase)
    applied: list[str] = []
    try:
        for step in phase.steps:
            if step.skipped is None:
                applied += _write(live, step)
                if not _wait(live, step):
                    return ExitCode.NO
    except KeyboardInterrupt:
        say([f"stopped; applied so far: {', '.join(applied) or 'nothing'}; run the same command again to go on"])
        return ExitCode.NO
    say([f"{phase_name}: done"])
    return ExitCode.YES


def _must_be_whole(phase: RenderedPhase) -> None:
    """A phase that has steps which only the loop can take is refused before its first write."""
    loop_only = [step.id for step in phase.steps if step.skipped is None and (step.step.trigger or step.step.captures)]
    pending = {item.input: item.remedy for item in (*phase.pending, *(i for step in phase.steps for i in step.pending))}
    if pending:
        raise problem("MissingInput", f"not known yet: {', '.join(pending)}", remedy="; ".join(pending.values()))
    if loop_only:
        message = f"{loop_only[0]} answers to what happens in the cluster, which only the loop can"
        raise problem("LoopOnly", message, remedy="leave --phase out: `upgradeplan apply` runs the whole plan")


def _write(live: Live, step: RenderedStep) -> list[str]:
    from reconcile.borrow.take import plan_take
    from reconcile.probes.look import Unseen
    from renderer.model.phase import Borrowed

    writer = live.writer()
    done: list[str] = []
    for manifest in step.manifests:
        body = live.parts.source.get(manifest.ref)
        if isinstance(body, Unseen):
            raise problem("Unreadable", f"{manifest.ref} cannot be read: {body.why}")
        if isinstance(manifest.spec, Borrowed):
            plan = plan_take(manifest.body, manifest.spec, body)
            if plan.patch is None:
                say([f"{manifest.ref}: {plan.because}"])
                continue
            applied = writer.take(manifest, plan.patch)
        else:
            applied = writer.own(manifest, body)
        if applied.problem is not None:
            raise Problems([applied.problem], ExitCode.CLUSTER)
        say([f"{manifest.ref}: {applied.outcome}", *(f"warning: {text}" for text in applied.warnings)])
        done.append(str(manifest.ref))
    return done


def _wait(live: Live, step: RenderedStep) -> bool:
    """Whether the gates have opened; False where one has failed."""
    shown = ""
    while True:
        verdicts = _verdicts(live, step)
        said = "; ".join(verdict.reason for verdict in verdicts if not verdict.passed)
        if said and said != shown:
            say([f"{wall_clock():%H:%M:%S} {step.id} waits: {said}"])
        shown = said
        if any(verdict.outcome == "failed" for verdict in verdicts):
            return False
        if all(verdict.passed for verdict in verdicts):
            return True
        time.sleep(_EVERY)


def _verdicts(live: Live, step: RenderedStep) -> list[Verdict]:
    from reconcile.decide.step import refs_by_template
    from reconcile.observe.snapshot import take
    from reconcile.probes.evaluate import evaluate
    from reconcile.probes.look import Scope
    from reconcile.probes.needs import needs

    scope = Scope(kinds=live.parts.kinds, now=wall_clock(), manifests=refs_by_template(step))
    wanted = [need for gate in step.step.gates for need in needs(gate.probe, scope)]
    snapshot = take(wanted, live.parts.source, live.parts.readings)
    return [evaluate(gate.probe, snapshot, scope) for gate in step.step.gates]
