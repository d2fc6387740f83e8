"""Starts a step: what it waits for beforehand, what it is skipped for, what it captures."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from reconcile.decide.admission import AdmissionCheck
from reconcile.decide.builder import LONG
from reconcile.decide.captures import read_captures
from reconcile.decide.check_gate import CheckedStep, carry_out
from reconcile.decide.owned import created
from reconcile.decide.probing import missing_object, scope_of
from reconcile.decide.step_run import Progress, StepRun
from reconcile.probes.evaluate import evaluate
from reconcile.probes.verdict import ProbeResult
from reconcile.status.record import StepRecord, StepState

_OUT_OF_TURN = "OutOfTurn"


def begin(run: StepRun, admit: AdmissionCheck) -> Progress | StepRecord:
    """Starts the step if nothing keeps it from that. Returns its record if its writes may be decided in this round."""
    if run.is_closed:
        return Progress.BUSY
    if run.item.skipped is not None:
        return run.skip(run.item.skipped)
    if run.item.pending:
        return run.wait_for_inputs()
    if run.item.skipped_if:
        text = f"it is not known whether {run.item.skipped_if[0]}: no step has recorded it"
        return run.wait(text, since=run.since("unknown"))
    if (nobody := missing_object(run.item)) is not None:
        return run.wait(nobody)
    captured: dict[str, Any] = {}
    if (trigger := run.step.trigger) is not None:
        verdict = evaluate(trigger.probe, run.builder.observation.look, scope_of(run.builder, run.item))
        if not verdict.passed:
            return run.wait(trigger.waiting or verdict.reason, verdict)
        captured |= {trigger.capture: verdict.seen} if trigger.capture else {}
    if (only := run.step.skip_unless) is not None:
        verdict = evaluate(only.probe, run.builder.observation.look, scope_of(run.builder, run.item))
        if verdict.outcome is ProbeResult.UNKNOWN:
            return run.wait(verdict.reason, verdict, since=run.since("unknown"))
        if not verdict.passed:
            return run.skip(only.reason)
    return _start(run, admit, captured)


def _start(run: StepRun, admit: AdmissionCheck, captured: dict[str, Any]) -> Progress | StepRecord:
    if run.item.held and run.step.hold and run.step.node:
        hold = run.step.hold
        state = (run.builder.status.node_states.get(run.step.node) or {}).get("state")
        if hold.event and state != hold.state:
            run.builder.events.append(hold.event)
        run.builder.move_node(run.step.node, hold.state, hold.reason, hold.message)
        run.builder.held.setdefault(hold.waiting, set()).add(run.step.node)
        return run.wait(f"{hold.waiting}: {run.step.node}", since=run.since("held"), limit=None)
    if (kept := admit()) is not None:
        if kept.out_of_turn and run.step.node:
            _warn(run, run.step.node, kept.text)
        since = run.since("turn" if kept.patient else "peers")
        return run.wait(kept.text, since=since, limit=None if kept.patient else LONG)
    checked = carry_out(run.builder, run.item)
    if checked.ends:
        return _end(run, checked)
    if checked.waits:
        return Progress.BUSY
    read = read_captures(run.builder, run.item)
    if isinstance(read, str):
        return run.wait(read, since=run.since("unread"))
    captured |= {**read, **_captured_before(run)}
    record = StepRecord(state=StepState.STARTED, started=_began(run), captured=captured)
    run.builder.record(run.key, record)
    run.node_state("active")
    for capture in run.step.captures:
        if capture.record:
            run.builder.status = run.builder.status.with_field(capture.record, captured[capture.name])
    return Progress.BUSY if captured else record


def _captured_before(run: StepRun) -> dict[str, Any]:
    """The values of the attempt before: a node whose first attempt has rebooted it has rebooted."""
    names = {capture.name for capture in run.step.captures}
    tried = run.builder.status.attempts_of(run.key)
    return {name: value for name, value in (tried[-1].captured if tried else {}).items() if name in names}


def _end(run: StepRun, checked: CheckedStep) -> Progress:
    """Ends the plan before the step has begun: checks have measured what cannot go on."""
    message, now = "; ".join(checked.ends), run.builder.now
    run.builder.record(run.key, StepRecord(state=StepState.FAILED, started=now, ended=now, message=message))
    run.builder.failures.append("; remedy: ".join(filter(None, (message, "; ".join(checked.remedies)))))
    return Progress.FAILED


def _began(run: StepRun) -> datetime:
    """Now, or when the manager started it that this plan was taken over from in this round."""
    if not run.builder.taken_over:
        return run.builder.now
    return created(run.builder, run.item) or run.builder.since


def _warn(run: StepRun, node: str, text: str) -> None:
    """The node stays where it is, and its entry says why."""
    entry = run.builder.status.node_states.get(node)
    if entry is None:
        return
    if entry.get("reason") != _OUT_OF_TURN:
        run.builder.event("Warning", _OUT_OF_TURN, f"Node {node} was requested out of turn: {text}")
    run.builder.move_node(node, entry["state"], _OUT_OF_TURN, text)
