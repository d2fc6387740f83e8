"""Judges the gates again and again, and remembers what that takes: passes in a row, and for how long it has looked.

Time in which the API server was away does not count. The caller has the clock and waits between two looks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from reconcile.cluster.errors import ClusterError
from reconcile.gate.resolved_gates import GateDocument, StepGate
from reconcile.observe.readings import Readings
from reconcile.observe.snapshot import judge
from reconcile.observe.source import Source
from reconcile.probes.evaluate import evaluate
from reconcile.probes.look import Look, ProbeContext
from reconcile.probes.verdict import ProbeResult, Verdict, gate_verdict, passed, worst
from reconcile.schemas import Schemas
from renderer.model.probe import Severity

BeforeGates = Callable[[datetime], tuple[Verdict, ...]]
"""Looks at what must pass before the gates are looked at, such as checks, and judges it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnswer:
    """`lines` are what has not passed yet, why the gate has failed, or what passed with a warning."""

    outcome: ProbeResult
    lines: tuple[str, ...]


class GateWait:
    """The gates of one document on one cluster."""

    def __init__(
        self,
        document: GateDocument,
        source: Source,
        readings: Readings,
        schemas: Schemas,
        before: BeforeGates = lambda now: (),
    ) -> None:
        self._document = document
        self._source = source
        self._readings = readings
        self._schemas = schemas
        self._before = before
        self._passes: dict[int, int] = {}
        self._last: datetime | None = None
        self.looked = timedelta()

    def look(self, now: datetime) -> GateAnswer:
        """One look. What could not be looked at is unknown, and never a failure."""
        try:
            verdicts = self._verdicts(now)
        except ClusterError as error:
            self._last = None
            self._passes.clear()
            return GateAnswer(outcome=ProbeResult.UNKNOWN, lines=tuple(item.message for item in error.problems))
        if self._last is not None:
            self.looked += now - self._last
        self._last = now
        return self._answer(verdicts)

    def _verdicts(self, now: datetime) -> _Verdicts:
        first = tuple(verdict for verdict in self._before(now) if not verdict.passed)
        if first:
            return _Verdicts(before=first)
        return _Verdicts(gates=judge(lambda look: self._of_gates(look, now), self._source, self._readings).answer)

    def _of_gates(self, look: Look, now: datetime) -> tuple[Verdict, ...]:
        scope = ProbeContext(kinds=self._document.kinds, schemas=self._schemas, now=now)
        return tuple(evaluate(item.gate.probe, look, scope) for item in self._document.gates)

    def _answer(self, verdicts: _Verdicts) -> GateAnswer:
        if verdicts.before:
            lines = tuple(verdict.reason for verdict in verdicts.before)
            return GateAnswer(outcome=worst(verdicts.before), lines=lines)
        judged = [self._judged(*each) for each in enumerate(zip(self._document.gates, verdicts.gates, strict=True))]
        outcome = worst([passed(""), *judged])
        return GateAnswer(outcome=outcome, lines=tuple(item.reason for item in judged if item.outcome is outcome))

    def _judged(self, number: int, pair: tuple[StepGate, Verdict]) -> Verdict:
        """The verdict of a gate: several passes in a row, a time-out, and a failure that is only a warning."""
        item, verdict = pair
        counted = gate_verdict(item.gate, verdict, self._passes.get(number, 0))
        self._passes[number] = counted.passes
        outcome, reason = counted.verdict.outcome, counted.verdict.reason
        limit = item.gate.timeout
        if outcome is ProbeResult.WAITING and limit is not None and self.looked >= timedelta(seconds=limit):
            outcome, reason = ProbeResult.FAILED, f"{reason}; it has not passed within {limit} s"
        if outcome is ProbeResult.WAITING and item.gate.slow_after and self._is_slow(item.gate.slow_after):
            reason = f"{reason}; this takes longer than expected"
        if outcome is ProbeResult.FAILED:
            reason = (item.gate.failure.message or "<why>").replace("<why>", reason)
            if item.gate.failure.severity is Severity.WARNING:
                outcome, reason = ProbeResult.PASSED, f"warning: {reason}"
        return replace(counted.verdict, outcome=outcome, reason=f"{item.step}: {reason}")

    def _is_slow(self, seconds: int) -> bool:
        return self.looked >= timedelta(seconds=seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Verdicts:
    """The verdicts of what must pass first and has not; else those of all gates."""

    before: tuple[Verdict, ...] = ()
    gates: tuple[Verdict, ...] = ()
