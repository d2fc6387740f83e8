"""The answer of a probe, and how several answers become one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from renderer.model.path import ABSENT
from renderer.model.ref import Ref


class ProbeResult(StrEnum):
    """Only `failed` is proof that something is bad; `unknown` is that we could not look."""

    PASSED = "passed"
    WAITING = "waiting"
    FAILED = "failed"
    UNKNOWN = "unknown"


_FROM_WORST = (ProbeResult.FAILED, ProbeResult.UNKNOWN, ProbeResult.WAITING, ProbeResult.PASSED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`reason` is a line that says object, found and wanted. `offenders` are the objects that keep it from passing.

    `seen` is what the probe's first field predicate saw on a single object, which a trigger may capture; `ABSENT`
    where it saw nothing.
    """

    outcome: ProbeResult
    reason: str
    offenders: tuple[Ref, ...] = ()
    seen: Any = ABSENT

    @property
    def passed(self) -> bool:
        return self.outcome is ProbeResult.PASSED


def passed(reason: str) -> Verdict:
    return Verdict(outcome=ProbeResult.PASSED, reason=reason)


def waiting(reason: str, *offenders: Ref) -> Verdict:
    return Verdict(outcome=ProbeResult.WAITING, reason=reason, offenders=offenders)


def failed(reason: str, *offenders: Ref) -> Verdict:
    return Verdict(outcome=ProbeResult.FAILED, reason=reason, offenders=offenders)


def unknown(reason: str, *offenders: Ref) -> Verdict:
    return Verdict(outcome=ProbeResult.UNKNOWN, reason=reason, offenders=offenders)


def worst(verdicts: Iterable[Verdict]) -> ProbeResult:
    """Failed before unknown before waiting; no verdicts at all are waiting, since an empty list passes nothing."""
    outcomes = {verdict.outcome for verdict in verdicts}
    return next((outcome for outcome in _FROM_WORST if outcome in outcomes), ProbeResult.WAITING)


def together(verdicts: Sequence[Verdict], separator: str = ", ") -> Verdict:
    """All of them, as bad as the worst; only what is as bad as that is said, each thing once."""
    outcome = worst(verdicts)
    chosen = [verdict for verdict in verdicts if verdict.outcome is outcome]
    return Verdict(
        outcome=outcome,
        reason=separator.join(dict.fromkeys(verdict.reason for verdict in chosen)),
        offenders=tuple(dict.fromkeys(ref for verdict in chosen for ref in verdict.offenders)),
    )
