"""One step's way: not begun -> Started -> Applied -> Completed, Failed or Skipped.

`Started` is decided on its own when the step has values to capture, since its manifests are rendered with them; else
its writes are decided in the same round, after the status that records the intent.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from reconcile.decide.admission import AdmissionCheck, always_admit
from reconcile.decide.builder import LONG, LONG_TO_READ, STEP_WARNING, DecisionBuilder, WaitRequest
from reconcile.decide.check_gate import carry_out
from reconcile.decide.missing_inputs import wait_for_inputs
from reconcile.decide.owned import created
from reconcile.decide.probing import (
    describe_failure,
    explain_failure,
    gate_state,
    is_asked_again,
    is_reconsidered,
    jobs_are_done,
    missing_object,
    note_jobs,
    read_captures,
    renamed,
    scope_of,
)
from reconcile.decide.writes import return_fields, writes
from reconcile.objects import is_applied_by_us, is_owned_by, uid
from reconcile.probes.evaluate import evaluate
from reconcile.probes.look import ReadFailure
from reconcile.probes.verdict import ProbeResult, Verdict
from reconcile.status.plan import key_of
from reconcile.status.record import OwnedObject, StepRecord, StepState
from renderer.model.manifest_spec import Borrowed, Occasion
from renderer.model.probe import Gate, Severity
from renderer.model.ref import Body
from renderer.model.rendered import RenderedStep

_OUT_OF_TURN = "OutOfTurn"


class Progress(StrEnum):
    """The progress of a step in this round."""

    DONE = "done"
    BUSY = "busy"
    FAILED = "failed"


def advance(builder: DecisionBuilder, item: RenderedStep, admit: AdmissionCheck = always_admit) -> Progress:
    """Takes a step as far as it can go in this round."""
    return _Step(builder, item).advance(admit)


class _Step:
    def __init__(self, builder: DecisionBuilder, item: RenderedStep) -> None:
        self.builder = builder
        self.item = item
        self.step = item.step
        self.key = key_of(item)

    def advance(self, admit: AdmissionCheck) -> Progress:
        record = self.builder.status.record(self.key)
        if self.builder.status.is_over(self.key):
            return_fields(self.builder, self.item, Occasion.COMPLETED)
            is_due = is_asked_again(self.builder, self.item) or is_reconsidered(self.builder.status, self.item)
            return self._begin(admit) if is_due else Progress.DONE
        if record is None:
            return self._begin(admit)
        if record.failed:
            return Progress.FAILED
        return self._carry_out(record) if record.state is StepState.STARTED else self._watch(record)

    # ---------------------------------------------------------------------------------------------------- beginning

    def _begin(self, admit: AdmissionCheck) -> Progress:
        if self._is_closed:
            return Progress.BUSY
        if self.item.skipped is not None:
            return self._skip(self.item.skipped)
        if self.item.pending:
            return self._wait_for_inputs()
        if (nobody := missing_object(self.item)) is not None:
            return self._wait(nobody)
        captured: dict[str, Any] = {}
        if (trigger := self.step.trigger) is not None:
            verdict = evaluate(trigger.probe, self.builder.observation.look, scope_of(self.builder, self.item))
            if not verdict.passed:
                return self._wait(trigger.waiting or verdict.reason, verdict)
            captured |= {trigger.capture: verdict.seen} if trigger.capture else {}
        if (only := self.step.skip_unless) is not None:
            verdict = evaluate(only.probe, self.builder.observation.look, scope_of(self.builder, self.item))
            if verdict.outcome is ProbeResult.UNKNOWN:
                return self._wait(verdict.reason, verdict, since=self._since("unknown"))
            if not verdict.passed:
                return self._skip(only.reason)
        return self._start(admit, captured)

    def _start(self, admit: AdmissionCheck, captured: dict[str, Any]) -> Progress:
        if self.item.held and self.step.hold and self.step.node:
            hold = self.step.hold
            self.builder.move_node(self.step.node, hold.state, hold.reason, hold.message)
            self.builder.held.setdefault(hold.waiting, set()).add(self.step.node)
            return self._wait(f"{hold.waiting}: {self.step.node}", since=self._since("held"), limit=None)
        if (kept := admit()) is not None:
            if kept.out_of_turn and self.step.node:
                self._warn(self.step.node, kept.text)
            since = self._since("turn" if kept.patient else "peers")
            return self._wait(kept.text, since=since, limit=None if kept.patient else LONG)
        checked = carry_out(self.builder, self.item)
        if checked.ends:
            return self._end(checked.ends)
        if checked.waits:
            return Progress.BUSY
        read = read_captures(self.builder, self.item)
        if isinstance(read, str):
            return self._wait(read, since=self._since("unread"))
        captured |= read
        record = StepRecord(state=StepState.STARTED, started=self._began(), captured=captured)
        self.builder.record(self.key, record)
        self._node_state("active")
        for capture in self.step.captures:
            if capture.record:
                self.builder.status = self.builder.status.with_field(capture.record, captured[capture.name])
        return Progress.BUSY if captured else self._carry_out(record)

    def _end(self, why: tuple[str, ...]) -> Progress:
        """Ends the plan before the step has begun: checks have measured what cannot go on."""
        message, now = "; ".join(why), self.builder.now
        self.builder.record(self.key, StepRecord(state=StepState.FAILED, started=now, ended=now, message=message))
        self.builder.failures.append(message)
        return Progress.FAILED

    def _began(self) -> datetime:
        """Now, or when the manager started it that this plan was taken over from in this round."""
        if not self.builder.taken_over:
            return self.builder.now
        return created(self.builder, self.item) or self.builder.since

    def _warn(self, node: str, text: str) -> None:
        """The node stays where it is, and its entry says why."""
        entry = self.builder.status.node_states.get(node)
        if entry is None:
            return
        if entry.get("reason") != _OUT_OF_TURN:
            self.builder.event("Warning", _OUT_OF_TURN, f"Node {node} was requested out of turn: {text}")
        self.builder.move_node(node, entry["state"], _OUT_OF_TURN, text)

    @property
    def _is_closed(self) -> bool:
        """The phase would make something else than was approved: only what has begun goes on."""
        return self.item.phase in self.builder.closed

    # -------------------------------------------------------------------------------------------------- carrying out

    def _carry_out(self, record: StepRecord) -> Progress:
        if self._has_made(record):  # and was stopped before it could record that
            return self._watch(self._made(record))
        if self._is_closed:
            return Progress.BUSY
        if not self._fetched(record):
            return Progress.DONE if self.item.phase in self.builder.status.skipped else Progress.BUSY
        if self.item.pending:
            return self._wait_for_inputs(record.started)
        actions = writes(self.builder, self.item)
        if isinstance(actions, str):
            return self._wait(actions, since=record.started)
        self._seed()
        for path, value in self.item.records:
            if self.builder.status.field(path) is None:  # what is recorded once stays
                self.builder.status = self.builder.status.with_field(path, value)
        record = replace(record, objects=owned(self.item))
        if actions:
            self.builder.record(self.key, record)
            self.builder.actions += actions
            return Progress.BUSY
        return self._watch(self._made(record))

    def _made(self, record: StepRecord) -> StepRecord:
        record = replace(record, state=StepState.APPLIED)
        self.builder.record(self.key, record)
        return record

    def _has_made(self, record: StepRecord) -> bool:
        """True if everything that the step was about to make is there, made by us: it stays as it is then, whatever
        the templates render now."""
        if not record.objects or any(isinstance(spec, Borrowed) for spec in self.step.manifests):
            return False
        found = [self.builder.observation.look.get(made.ref) for made in record.objects]
        return all(
            body is not None and not isinstance(body, ReadFailure) and self._is_made_by_us(body) for body in found
        )

    def _is_made_by_us(self, body: Body) -> bool:
        return is_owned_by(body, uid(self.builder.observation.plan)) and is_applied_by_us(body)

    def _fetched(self, record: StepRecord) -> bool:
        for fetch in self.step.fetches:
            if fetch.name in self.builder.observation.fetched:
                continue
            missing = self.builder.observation.fetch_failures.get(fetch.name)
            if missing is None:  # it is read once the status says that the step has begun
                return False
            if missing.absent and fetch.absent is not None:
                self.builder.status = self.builder.status.with_skipped(self.item.phase, fetch.absent.reason)
                self.builder.record(self.key, record.ending(StepState.SKIPPED, self.builder.now, fetch.absent.reason))
                if fetch.absent.event:
                    self.builder.events.append(fetch.absent.event)
            else:
                self.builder.progress = missing.why
                self._wait(missing.why, since=record.started, limit=LONG_TO_READ)
            return False
        return True

    def _seed(self) -> None:
        """Puts every node of the plan at the start, but those that are past it."""
        if (seed := self.step.initial_node_state) is None:
            return
        for node in self.builder.nodes:
            state = (self.builder.status.node_states.get(node) or {}).get("state")
            if state is None or state in seed.replaces:
                self.builder.status = self.builder.status.reset_node(node, seed.state)

    # ------------------------------------------------------------------------------------------------------ watching

    def _watch(self, record: StepRecord) -> Progress:
        if not self._is_closed and self._is_to_be_made_again(record):
            earlier = (*record.earlier, *record.objects)
            record = StepRecord(
                state=StepState.STARTED, started=self.builder.now, earlier=earlier, captured=record.captured
            )
            self.builder.record(self.key, record)
            return self._carry_out(record)
        if self.item.pending:
            return self._wait_for_inputs(record.started)
        note_jobs(self.builder, self.item)
        verdicts = [self._gate(index, gate, record) for index, gate in enumerate(self.step.gates)]
        for gate, verdict in zip(self.step.gates, verdicts, strict=True):
            if verdict.outcome is ProbeResult.FAILED and gate.failure.severity is Severity.TERMINAL:
                return self._fail(gate, verdict, record)
        waiting = [verdict for verdict in verdicts if verdict.outcome in (ProbeResult.WAITING, ProbeResult.UNKNOWN)]
        if waiting:
            return Progress.BUSY
        return self._complete(record, verdicts)

    def _is_to_be_made_again(self, record: StepRecord) -> bool:
        """Nothing is created twice automatically: only if another attempt is requested, by the plan's annotation, and
        what was made for the last one is gone."""
        look = self.builder.observation.look
        gone = [(now, then) for now, then in renamed(self.item, record) if look.get(then) is None]
        for now, then in gone:
            self.builder.event("Normal", "StepRetried", f"{self.item.id}: {then} is gone, trying again as {now.name}")
        return bool(gone)

    def _gate(self, index: int, gate: Gate, record: StepRecord) -> Verdict:
        verdict = gate_state(self.builder, self.item, index, gate, record)
        if verdict.outcome in (ProbeResult.WAITING, ProbeResult.UNKNOWN):
            self._wait(verdict.reason, verdict, since=record.started, limit=gate.slow_after or LONG)
            self.builder.progress = self.builder.progress or gate.waiting or ""
        return verdict

    def _fail(self, gate: Gate, verdict: Verdict, record: StepRecord) -> Progress:
        reason, why = explain_failure(self.builder, verdict)
        message = (gate.failure.message or verdict.reason).replace("<why>", why)
        self.builder.record(self.key, record.ending(StepState.FAILED, self.builder.now, message))
        self.builder.failures.append(describe_failure(self.builder, self.item, message, why))
        self._node_state("failed", reason, why)
        if gate.failure.event:
            self.builder.events.append(gate.failure.event)
        return Progress.FAILED

    def _complete(self, record: StepRecord, verdicts: list[Verdict]) -> Progress:
        failed = [verdict.reason for verdict in verdicts if verdict.outcome is ProbeResult.FAILED]
        noted = [text for verdict in verdicts if verdict.passed for text in verdict.warnings]
        message = "; ".join((*failed, *noted))
        if failed:
            text = next((f"{g.failure.message} ({message})" for g in self.step.gates if g.failure.message), message)
            self.builder.event("Warning", STEP_WARNING, text)
        else:
            jobs_are_done(self.builder, self.item)
            for text in noted:
                self.builder.event("Warning", STEP_WARNING, text)
        self.builder.record(self.key, record.ending(StepState.COMPLETED, self.builder.now, message))
        self._node_state("completed")
        return_fields(self.builder, self.item, Occasion.COMPLETED)
        return Progress.DONE

    def _skip(self, because: str) -> Progress:
        if self.builder.status.is_over(self.key):  # it was skipped before
            return Progress.DONE
        record = StepRecord(state=StepState.SKIPPED, started=self.builder.now, ended=self.builder.now, message=because)
        self.builder.record(self.key, record)
        for text in self.step.skip_warnings(because):
            self.builder.event("Warning", STEP_WARNING, text)
        return Progress.DONE

    # ------------------------------------------------------------------------------------------------------- support

    def _node_state(self, word: str, reason: str = "", message: str = "") -> None:
        state = getattr(self.step.node_states, word, None)
        if state and self.step.node:
            self.builder.move_node(self.step.node, state, reason, message)

    def _since(self, why: str) -> datetime:
        """Since when the step is kept from starting for this reason."""
        return self.builder.waiting_since(f"{self.item.id}: {why}")

    def _wait_for_inputs(self, since: datetime | None = None) -> Progress:
        since = since or self.builder.reached(self.item.phase, self.step.node)
        wait_for_inputs(self.builder, self.item.pending, step=self.item.id, node=self.step.node, since=since)
        return Progress.BUSY

    def _wait(
        self,
        text: str,
        verdict: Verdict | None = None,
        *,
        since: datetime | None = None,
        limit: int | None = LONG,
    ) -> Progress:
        """Adds a wait. Without a start of its own it began when the step before it ended, and is slow once nothing has
        moved in the phase for that long."""
        asked = WaitRequest(
            text=text,
            step=self.item.id,
            node=self.step.node,
            since=since or self.builder.reached(self.item.phase, self.step.node),
            idle=None if since else self.item.phase,
            limit=limit,
            unknown=verdict is not None and verdict.outcome is ProbeResult.UNKNOWN,
            refs=verdict.offenders if verdict else (),
            summary=verdict.summary if verdict else "",
        )
        self.builder.ask(asked)
        return Progress.BUSY


def owned(item: RenderedStep) -> tuple[OwnedObject, ...]:
    """The objects that the step makes, as they are rendered now."""
    return tuple(OwnedObject.of(manifest) for manifest in item.manifests if not manifest.borrowed)
