"""A gate opens when its probe has passed often enough without a break."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconcile.probes.verdict import ProbeResult, Verdict
from renderer.model.probe import Gate


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVerdict:
    """`passes` is the number to give next time: how often the probe has now passed in a row."""

    verdict: Verdict
    passes: int


def gate_verdict(gate: Gate, verdict: Verdict, passes: int) -> GateVerdict:
    """`passes` is how often the probe had passed in a row before this look, which must be a new one.

    Anything but a pass breaks the row, also that we could not look: nobody knows what was in between.
    """
    if not verdict.passed:
        return GateVerdict(verdict=verdict, passes=0)
    passes = min(passes + 1, gate.consecutive)
    if passes == gate.consecutive:
        return GateVerdict(verdict=verdict, passes=passes)
    reason = f"{verdict.reason}; passed {passes} of {gate.consecutive} times in a row"
    return GateVerdict(verdict=replace(verdict, outcome=ProbeResult.WAITING, reason=reason), passes=passes)
