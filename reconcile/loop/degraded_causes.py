"""Finds why a plan waits too long, or has failed, for its Degraded condition.

What the diagnosis looks at is read for it, where it is not watched anyway: when a plan begins to wait too long, when
something else does, and every few minutes; and once before a failure is final. A decision is given the words, so that
it is the same in a replay.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from reconcile.cluster.errors import ClusterError
from reconcile.cluster.protocol import Keep
from reconcile.decide.decision import Decision
from reconcile.decide.plan import is_over
from reconcile.decide.plan_conditions import WAITING_LONG
from reconcile.diagnosis.diagnosing import no_logs
from reconcile.diagnosis.situation import Cause
from reconcile.loop.deps import ReconcilerDeps
from reconcile.loop.round import CausesOfWaits, Memory, Round
from reconcile.loop.round_causes import judge_round
from reconcile.observe.kept_fields import without
from reconcile.observe.snapshot import Needs
from reconcile.observe.source import DirectSource, WatchedFirst
from reconcile.probes.look import Need
from reconcile.status.plan import FAILED, PlanStatus
from renderer.catalog.kinds import KindRow
from renderer.errors import Problems, in_a_line

_AGAIN = 300.0
"""Seconds after which the causes of the same waits are looked for again."""
_SOONEST = 60.0
"""The same where something else is waited for."""
_TOLD = 3
_HEAVY: Mapping[str, tuple[str, ...]] = {
    "Pod": ("containers", "initContainers", "volumes"),
    "VirtualMachineInstance": ("domain", "networks", "volumes"),
}
"""The parts of the spec, by kind, that make long lists large and that no cause reads."""


def with_causes(done: Round, deps: ReconcilerDeps, memory: Memory, decided_with: tuple[str, ...]) -> Round:
    """The round, with the causes of its waits in `memory`. Another round follows if they are not those that it was
    decided with. Raises `Away` and its like."""
    now = deps.now()
    found = memory.causes = _causes_of_waits(done, deps, memory.causes, now)
    if found is None:
        return done
    if found.texts != decided_with:
        return replace(done, again=True, steady=None)
    left = _AGAIN - (now - found.at).total_seconds()
    return done if done.steady is None else replace(done, steady=min(done.steady, left))


def find_failure(done: Round, deps: ReconcilerDeps, memory: Memory, status: PlanStatus) -> bool:
    """Puts the causes of a failure that is not final yet into `memory`, unless they are known, whatever happens to the
    process meanwhile. True if `done`, of which nothing has been written, is to be decided with them. Raises `Away` and
    its like."""
    if status.phase != FAILED:
        memory.failed_by = None
    elif memory.failed_by is None and not is_over(status):
        memory.failed_by, _ = _found(done, deps, deps.now(), ())
        return bool(memory.failed_by)
    return False


def known_causes(memory: Memory, status: PlanStatus) -> tuple[str, ...]:
    """Those that a decision about a plan of this status is made with."""
    if status.phase == FAILED:
        return memory.failed_by or ()
    return memory.causes.texts if memory.causes else ()


def _causes_of_waits(
    done: Round, deps: ReconcilerDeps, known: CausesOfWaits | None, now: datetime
) -> CausesOfWaits | None:
    """Those that are known, or those of now if it is time to look again; None for a plan that waits for nothing too
    long."""
    if done.decision is None or not _waits_too_long(done.decision):
        return None
    waits = frozenset(wait.step for wait in done.decision.waits if wait.slow)
    if known is not None and (now - known.at).total_seconds() < (_AGAIN if known.waits == waits else _SOONEST):
        return known
    texts, looked_at = _found(done, deps, now, known.looked_at if known else ())
    return CausesOfWaits(waits=waits, at=now, texts=texts, looked_at=looked_at)


def _waits_too_long(decision: Decision) -> bool:
    degraded = decision.status.condition("Degraded") or {}
    return (degraded.get("status"), degraded.get("reason")) == ("True", WAITING_LONG)


def _found(done: Round, deps: ReconcilerDeps, now: datetime, likely: Iterable[Need]) -> tuple[tuple[str, ...], Needs]:
    """The first causes for which somebody has to act, and all that was looked at. A mistake in an overlay's causes
    holds up no upgrade."""
    source = WatchedFirst(deps.watched, DirectSource(deps.cluster, deps.kinds, _kept))
    try:
        judged = judge_round(done, deps, now, source, no_logs, likely)
    except ClusterError:
        raise
    except Problems as error:
        return (f"causes cannot be looked for: {in_a_line(error.problems)}",), Needs()
    texts = tuple(_text(cause) for cause in judged.answer.causes if not cause.patient)
    return texts[:_TOLD], judged.looked_at


def _text(cause: Cause) -> str:
    """The object, what is wrong with it, since when, and what to do."""
    node = f" [{cause.node}]" if cause.node and not cause.object.endswith(f" {cause.node}") else ""
    since = f" since {cause.since}" if cause.since else ""
    return f"{cause.object}{node} {cause.what}{since}; remedy: {cause.remedy}"


def _kept(row: KindRow) -> Keep:
    return without(_HEAVY.get(row.kind.kind, ()))
