"""Drives the loop and a played world in one thread, from one thing that happens to the next, on a simulated clock.

The loop is the very one that production runs; only time is not waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from reconcile.cluster.errors import Away, ClusterError, Throttled
from reconcile.loop.outage_clock import OutageClock
from reconcile.loop.reconciler import Reconciler, Round

_AWAY_RETRY = timedelta(seconds=1)
_ROUNDS_AT_ONCE = 1000
"""More rounds than this without time passing is a loop that gets nowhere: a bug of ours."""


class Participants(Protocol):
    """Everybody else who acts on the cluster."""

    def step(self, now: datetime) -> bool:
        """Lets everybody do what can be done now; whether anything was done."""
        ...

    def next_due(self) -> datetime | None:
        """When somebody will have something to do; None if nobody waits for time alone."""
        ...


class DriverClock(Protocol):
    def now(self) -> datetime: ...

    def advance(self, seconds: float) -> None: ...


class Ending(StrEnum):
    """How a drive came to its end."""

    OVER = "over"  # the plan has ended, or is gone
    STANDSTILL = "standstill"  # nothing will happen any more
    OUT_OF_TIME = "out of time"


class SimulationDriver:
    """One plan, driven to its end. `on_round` is told of every round that decided or waits for something."""

    def __init__(
        self,
        reconciler: Reconciler,
        participants: Participants,
        clock: DriverClock,
        outage_clock: OutageClock,
        *,
        settle: Callable[[], object],
        on_round: Callable[[Round], None],
    ) -> None:
        """`settle` lets the cluster's own controllers finish what they do at once (garbage collection)."""
        self._reconciler = reconciler
        self._world = participants
        self._clock = clock
        self._attention = outage_clock
        self._settle = settle
        self._on_round = on_round

    def run(self, name: str, limit: timedelta) -> Ending:
        """Until the plan is over, nothing moves any more, or `limit` of simulated time has passed."""
        end = self._clock.now() + limit
        quiet_since = self._clock.now()
        while self._clock.now() < end:
            last, moved = self._until_quiet(name)
            if last is not None and last.over:
                return Ending.OVER
            if moved:
                quiet_since = self._clock.now()
            due = self._next(last, self._clock.now() - quiet_since)
            if due is None or (self._world.next_due() is None and self._is_still(quiet_since)):
                return Ending.STANDSTILL
            self._clock.advance(max(0.0, (min(due, end) - self._clock.now()).total_seconds()))
        return Ending.OUT_OF_TIME

    def _is_still(self, since: datetime) -> bool:
        """Nobody acts, and looking again has not helped for longer than any wait may be called slow."""
        return self._clock.now() - since > timedelta(hours=6)

    def _until_quiet(self, name: str) -> tuple[Round | None, bool]:
        """Rounds and the world's steps in turn, until neither has anything to do at this moment."""
        moved = False
        for _ in range(_ROUNDS_AT_ONCE):
            done = self._round(name)
            acted = self._world.step(self._clock.now())
            self._settle()
            again = done is not None and not done.problems and done.again
            moved = moved or again or acted
            if not (again or acted) or (done is not None and done.over):
                return done, moved
        raise AssertionError("the loop and the world go round without time passing")

    def _round(self, name: str) -> Round | None:
        """None while the API server is away, or where it refused what a round cannot go without."""
        try:
            done = self._reconciler.round(name)
        except (Away, Throttled):
            self._attention.lost()
            return None
        except ClusterError:
            return None
        self._attention.found()
        self._on_round(done)
        return done

    def _next(self, last: Round | None, quiet: timedelta) -> datetime | None:
        """The longer nothing has moved, the later the next look; what the world does is never missed."""
        now = self._clock.now()
        times = [self._world.next_due()]
        if last is None:
            times.append(now + _AWAY_RETRY)
        elif last.recheck is not None or last.problems:
            times.append(now + max(timedelta(seconds=last.recheck or 1.0), quiet / 2))
        found = [time for time in times if time is not None]
        return max(min(found), now + timedelta(milliseconds=100)) if found else None
