"""The answer of a probe, how several answers become one, and when a gate opens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from renderer.model.path import ABSENT
from renderer.model.probe import Gate
from renderer.model.ref import Ref

if TYPE_CHECKING:
    from reconcile.probes.look import ReadFailure


class ProbeResult(StrEnum):
    """Only `failed` is proof that something is bad; `unknown` is that we could not look."""

    PASSED = "passed"
    WAITING = "waiting"
    FAILED = "failed"
    UNKNOWN = "unknown"


_FROM_WORST = (ProbeResult.FAILED, ProbeResult.UNKNOWN, ProbeResult.WAITING, ProbeResult.PASSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`reason` is a line that names the object, what was found and what is expected. `offenders` are the objects that
    keep it from passing.

    `seen` is what the probe's first field predicate saw on a single object, which a trigger may capture; `ABSENT`
    where it saw nothing. `summary` says the same as `reason` in the words of the gate, if it has any. `warnings` are
    what somebody should know although it passes. `each` are the single verdicts that it was made of and that did not
    pass, where it is about many objects: all of them, while `reason` names a few.
    """

    outcome: ProbeResult
    reason: str
    offenders: tuple[Ref, ...] = ()
    seen: Any = ABSENT
    summary: str = ""
    warnings: tuple[str, ...] = ()
    each: tuple[Verdict, ...] = field(default=(), repr=False, compare=False)

    @property
    def passed(self) -> bool:
        return self.outcome is ProbeResult.PASSED

    @property
    def singles(self) -> tuple[Verdict, ...]:
        """The verdicts that did not pass, one by one; itself where it was made of no others."""
        return self.each or (() if self.passed else (self,))


def passed(reason: str, *warnings: str) -> Verdict:
    return Verdict(outcome=ProbeResult.PASSED, reason=reason, warnings=warnings)


def waiting(reason: str, *offenders: Ref) -> Verdict:
    return Verdict(outcome=ProbeResult.WAITING, reason=reason, offenders=offenders)


def failed(reason: str, *offenders: Ref) -> Verdict:
    return Verdict(outcome=ProbeResult.FAILED, reason=reason, offenders=offenders)


def unknown(reason: str, *offenders: Ref) -> Verdict:
    return Verdict(outcome=ProbeResult.UNKNOWN, reason=reason, offenders=offenders)


def unread(what: object, failure: ReadFailure, *offenders: Ref) -> Verdict:
    """Unknown, since `what` could not be read."""
    return unknown(f"{what} could not be read: {failure.text}", *offenders)


def worst(verdicts: Iterable[Verdict]) -> ProbeResult:
    """Failed before unknown before waiting; no verdicts at all are waiting, since an empty list passes nothing."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return next((outcome for outcome in _FROM_WORST if outcome in outcomes), ProbeResult.WAITING)


def together(verdicts: Sequence[Verdict], separator: str = ", ") -> Verdict:
    """All of them, as bad as the worst; only what is as bad as that is said, each thing once."""
    if len(verdicts) == 1 and not verdicts[0].offenders:
        return verdicts[0]
    outcome = worst(verdicts)
    chosen = [verdict for verdict in verdicts if verdict.outcome is outcome]
    return Verdict(
        outcome=outcome,
        reason=separator.join(dict.fromkeys(verdict.reason for verdict in chosen)),
        offenders=tuple(dict.fromkeys(ref for verdict in chosen for ref in verdict.offenders)),
        warnings=tuple(dict.fromkeys(text for verdict in chosen for text in verdict.warnings)),
        each=tuple(single for verdict in verdicts for single in verdict.singles),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GateVerdict:
    """`passes` is the number to give next time: how often the probe has now passed in a row."""

    verdict: Verdict
    passes: int


def gate_verdict(gate: Gate, verdict: Verdict, passes: int) -> GateVerdict:
    """`passes` is how often the probe had passed in a row before this look, which must be a new one.

    Anything but a pass breaks the row, also a failed look: the state in between is unknown.
    """
    if not verdict.passed:
        return GateVerdict(verdict=verdict, passes=0)
    passes = min(passes + 1, gate.consecutive)
    if passes == gate.consecutive:
        return GateVerdict(verdict=verdict, passes=passes)
    reason = f"{verdict.reason}; passed {passes} of {gate.consecutive} times in a row"
    return GateVerdict(verdict=replace(verdict, outcome=ProbeResult.WAITING, reason=reason), passes=passes)
