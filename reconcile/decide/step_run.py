"""A step in one round: what starting, carrying out and watching it have in common."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from reconcile.decide.builder import LONG, STEP_WARNING, DecisionBuilder, WaitRequest
from reconcile.decide.missing_inputs import wait_for_inputs
from reconcile.probes.verdict import ProbeResult, Verdict
from reconcile.status.plan import key_of
from reconcile.status.record import StepRecord, StepState
from renderer.model.rendered import RenderedStep


class Progress(StrEnum):
    """The progress of a step in this round."""

    DONE = "done"
    BUSY = "busy"
    FAILED = "failed"


class StepRun:
    """A step of the plan as this round finds it. Each of its methods decides something into the builder."""

    def __init__(self, builder: DecisionBuilder, item: RenderedStep) -> None:
        self.builder = builder
        self.item = item
        self.step = item.step
        self.key = key_of(item)

    @property
    def is_closed(self) -> bool:
        """The phase would make something else than was approved: only what has begun goes on."""
        return self.item.phase in self.builder.closed

    def skip(self, because: str) -> Progress:
        if self.builder.status.is_over(self.key):  # it was skipped before
            return Progress.DONE
        record = StepRecord(state=StepState.SKIPPED, started=self.builder.now, ended=self.builder.now, message=because)
        self.builder.record(self.key, record)
        for text in self.step.skip_warnings(because):
            self.builder.event("Warning", STEP_WARNING, text)
        return Progress.DONE

    def node_state(self, word: str, reason: str = "", message: str = "") -> None:
        state = getattr(self.step.node_states, word, None)
        if state and self.step.node:
            self.builder.move_node(self.step.node, state, reason, message)

    def since(self, why: str) -> datetime:
        """Since when the step is kept from starting for this reason."""
        return self.builder.waiting_since(f"{self.item.id}: {why}")

    def wait_for_inputs(self, since: datetime | None = None) -> Progress:
        since = since or self.builder.reached(self.item.phase, self.step.node)
        wait_for_inputs(self.builder, self.item.pending, step=self.item.id, node=self.step.node, since=since)
        return Progress.BUSY

    def wait(
        self,
        text: str,
        verdict: Verdict | None = None,
        *,
        since: datetime | None = None,
        counted: datetime | None = None,
        limit: int | None = LONG,
    ) -> Progress:
        """Adds a wait. Without a start of its own it began when the step before it ended, and is slow once nothing has
        moved in the phase for that long; else its limit counts from there, or from `counted` if that is later."""
        asked = WaitRequest(
            text=text,
            step=self.item.id,
            node=self.step.node,
            since=since or self.builder.reached(self.item.phase, self.step.node),
            counted=max(since, counted) if since and counted else None,
            idle=None if since else self.item.phase,
            limit=limit,
            unknown=verdict is not None and verdict.outcome is ProbeResult.UNKNOWN,
            refs=verdict.offenders if verdict else (),
            summary=verdict.summary if verdict else "",
        )
        self.builder.ask(asked)
        return Progress.BUSY
