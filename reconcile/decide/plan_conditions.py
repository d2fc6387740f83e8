"""The plan's conditions, from what was decided: its phase, what it waits for, what is wrong or takes too long."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from reconcile.decide.builder import DecisionBuilder
from reconcile.decide.check_gate import BLOCKED
from reconcile.decide.decision import Wait
from reconcile.status.plan import TERMINAL
from reconcile.status.times import span_text, time_text

WAITING_LONG = "WaitingLong"
"""The reason of Degraded where somebody has to act, or something takes longer than usual."""

_SAYS = attrgetter("summary", "text")


def set_progressing(builder: DecisionBuilder) -> None:
    """Sets Progressing to the phase and what it waits for, and Degraded to what takes too long."""
    if builder.status.phase in TERMINAL:
        return
    held = "; ".join(f"{text}: {', '.join(sorted(nodes))}" for text, nodes in builder.held.items())
    message, reason = held or builder.progress, builder.status.phase or "Pending"
    builder.condition("Progressing", "True", reason, message)
    words = message or first_waits(builder)
    set_kstatus(builder, ready=False, moving=True, stalled=False, reason=reason, message=words)
    if not set_degraded(builder):
        builder.condition("Degraded", "False", "ReconcileSuccess")


def first_waits(builder: DecisionBuilder) -> str:
    """The first of what the plan waits for. Many nodes wait for the same."""
    distinct = dict(zip(map(_SAYS, builder.waits), builder.waits, strict=True))
    return "; ".join([*dict.fromkeys(wait.words for wait in distinct.values())][:3])


def set_degraded(builder: DecisionBuilder) -> bool:
    """True if something is wrong or takes too long; if so, sets Degraded. All blocking checks are named."""
    slow = [wait for wait in builder.waits if wait.slow]
    if builder.errors:
        builder.condition("Degraded", "True", "ReconcileError", "; ".join(builder.errors[:5]))
    elif blocking := [wait for wait in slow if wait.check]:
        others = [wait for wait in slow if not wait.check]
        told = dict.fromkeys([*map(_said, others[:5]), *(wait.text for wait in blocking)])
        builder.condition("Degraded", "True", BLOCKED, "; ".join(told))
    elif slow:
        builder.condition("Degraded", "True", WAITING_LONG, "; ".join(_why(builder, slow)))
    return bool(builder.errors or slow)


def _why(builder: DecisionBuilder, slow: Iterable[Wait]) -> Iterable[str]:
    """The causes, and then what is waited for."""
    return dict.fromkeys([*builder.observation.causes, *map(_said, [*slow][:5])])


def _said(wait: Wait) -> str:
    since = f" since {time_text(wait.since)}" if wait.since else ""
    limit = f", longer than {span_text(wait.limit)}" if wait.limit is not None else ""
    return f"{f'{wait.step}: ' if wait.step else ''}{wait.words}{since}{limit}"


def set_kstatus(
    builder: DecisionBuilder, *, ready: bool, moving: bool, stalled: bool, reason: str, message: str
) -> None:
    """Sets the kstatus conditions, by which Flux, Helm and kubectl judge any custom resource."""
    for kind, there in (("Ready", ready), ("Reconciling", moving), ("Stalled", stalled)):
        builder.condition(kind, "True" if there else "False", reason, message)
