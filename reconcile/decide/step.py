"""The states of one step: not begun -> Started -> Applied -> Completed, Failed or Skipped.

`Started` is decided on its own when the step has values to capture, since its manifests are rendered with them; else
its writes are decided in the same round, after the status that records the intent.
"""

from __future__ import annotations

from dataclasses import replace

from reconcile.decide.admission import AdmissionCheck, always_admit
from reconcile.decide.builder import LONG, LONG_TO_READ, STEP_WARNING, DecisionBuilder
from reconcile.decide.captures import given_up, united_since
from reconcile.decide.probing import (
    describe_failure,
    explain_failure,
    gate_state,
    is_asked_again,
    is_reconsidered,
    is_withdrawn,
    jobs_are_done,
    last_moved,
    note_jobs,
    renamed,
)
from reconcile.decide.step_run import Progress, StepRun
from reconcile.decide.step_start import begin
from reconcile.decide.writes import return_fields, writes
from reconcile.objects import is_applied_by_us, is_owned_by, uid
from reconcile.probes.look import ReadFailure
from reconcile.probes.verdict import ProbeResult, Verdict
from reconcile.status.record import OwnedObject, StepRecord, StepState
from renderer.model.manifest_spec import Borrowed, Occasion
from renderer.model.probe import Gate, Severity
from renderer.model.ref import Body
from renderer.model.rendered import RenderedStep


def advance(builder: DecisionBuilder, item: RenderedStep, admit: AdmissionCheck = always_admit) -> Progress:
    """Takes a step as far as it can go in this round."""
    return _Step(builder, item).advance(admit)


class _Step:
    def __init__(self, builder: DecisionBuilder, item: RenderedStep) -> None:
        self.run = StepRun(builder, item)
        self.builder = builder
        self.item = item
        self.step = item.step
        self.key = self.run.key

    def advance(self, admit: AdmissionCheck) -> Progress:
        record = self.builder.status.record(self.key)
        if self.builder.status.is_over(self.key):
            self._give_up(record)
            return_fields(self.builder, self.item, Occasion.COMPLETED)
            is_due = is_asked_again(self.builder, self.item) or is_reconsidered(self.builder.status, self.item)
            return self._begin(admit) if is_due else Progress.DONE
        if record is None:
            return self._begin(admit)
        if record.failed:
            return Progress.FAILED
        return self._carry_out(record) if record.state is StepState.STARTED else self._watch(record)

    def _give_up(self, record: StepRecord | None) -> None:
        """Records values that no longer hold, while a later step has not begun."""
        if record is None or not self.step.captures:
            return
        captured = given_up(self.builder, self.item, record)
        if captured != record.captured:
            self.builder.record(self.key, replace(record, captured=captured))

    def _begin(self, admit: AdmissionCheck) -> Progress:
        begun = begin(self.run, admit)
        return self._carry_out(begun) if isinstance(begun, StepRecord) else begun

    # -------------------------------------------------------------------------------------------------- carrying out

    def _carry_out(self, record: StepRecord) -> Progress:
        if self._has_made(record):  # and was stopped before it could record that
            return self._watch(self._made(record))
        if self.run.is_closed:
            return Progress.BUSY
        if not self._fetched(record):
            return Progress.DONE if self.item.phase in self.builder.status.skipped else Progress.BUSY
        if self.item.pending:
            return self.run.wait_for_inputs(record.started)
        actions = [] if is_withdrawn(self.builder, self.item, record) else writes(self.builder, self.item)
        if isinstance(actions, str):
            return self.run.wait(actions, since=record.started)
        self._seed()
        for path, value in self.item.records:
            if self.builder.status.field(path) is None:  # what is recorded once stays
                self.builder.status = self.builder.status.with_field(path, value)
        record = replace(record, objects=_owned(self.item))
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
                self.run.wait(missing.why, since=record.started, limit=LONG_TO_READ)
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
        if not self.run.is_closed and self._is_to_be_made_again(record):
            earlier = (*record.earlier, *record.objects)
            record = StepRecord(
                state=StepState.STARTED, started=self.builder.now, earlier=earlier, captured=record.captured
            )
            self.builder.record(self.key, record)
            return self._carry_out(record)
        if self.item.pending:
            return self.run.wait_for_inputs(record.started)
        record = self._united(record)
        note_jobs(self.builder, self.item)
        verdicts = [self._gate(index, gate, record) for index, gate in enumerate(self.step.gates)]
        for gate, verdict in zip(self.step.gates, verdicts, strict=True):
            if verdict.outcome is ProbeResult.FAILED and gate.failure.severity is Severity.TERMINAL:
                return self._fail(gate, verdict, record)
        waiting = [verdict for verdict in verdicts if verdict.outcome in (ProbeResult.WAITING, ProbeResult.UNKNOWN)]
        if waiting:
            return Progress.BUSY
        return self._complete(record, verdicts)

    def _united(self, record: StepRecord) -> StepRecord:
        """With names that lists have got since: the writer of such a list may drop them again."""
        captured = united_since(self.builder, self.item, record)
        if captured == record.captured:
            return record
        record = replace(record, captured=captured)
        self.builder.record(self.key, record)
        return record

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
            moved = last_moved(self.builder, self.item)
            self.run.wait(verdict.reason, verdict, since=record.started, counted=moved, limit=gate.slow_after or LONG)
            self.builder.progress = self.builder.progress or gate.waiting or ""
        return verdict

    def _fail(self, gate: Gate, verdict: Verdict, record: StepRecord) -> Progress:
        reason, why = explain_failure(self.builder, verdict)
        message = (gate.failure.message or verdict.reason).replace("<why>", why)
        self.builder.record(self.key, record.ending(StepState.FAILED, self.builder.now, message))
        self.builder.failures.append(describe_failure(self.builder, self.item, message, why))
        self.run.node_state("failed", reason, why)
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
        self.run.node_state("completed")
        if self.step.completed:
            self.builder.events.append(self.step.completed)
        return_fields(self.builder, self.item, Occasion.COMPLETED)
        return Progress.DONE


def _owned(item: RenderedStep) -> tuple[OwnedObject, ...]:
    """The objects that the step makes, as they are rendered now."""
    return tuple(OwnedObject.of(manifest) for manifest in item.manifests if not manifest.borrowed)
