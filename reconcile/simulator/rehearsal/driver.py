"""Drives the loop and the simulation in one thread, from one thing that happens to the next, on a simulated clock.

The loop is the very one that production runs; only time is not waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol

from reconcile.cluster.errors import Away, ClusterError, Throttled
from reconcile.loop.outage_clock import OutageClock
from reconcile.loop.queue import WorkQueue
from reconcile.loop.reconciler import Reconciler
from reconcile.loop.round import Round

_AWAY_RETRY = 1.0
_ROUNDS_AT_ONCE = 1000
"""More rounds than this without time passing are an endless loop: a bug in this program."""


_STILL, _STILL_FOR_A_WINDOW = timedelta(hours=6), timedelta(days=8)
"""Nobody acts, and looking again has not helped for longer than any wait may be called slow, or than a week lasts."""
_WINDOW = 600.0
"""Seconds after which a plan that waits for a time looks again: windows open every ten minutes at most."""

_TRIES_IN_VAIN = 100
"""Others act this often, for more than a day, and the plan makes no progress: it never will."""


class Participants(Protocol):
    """Everybody else who acts on the cluster."""

    def step(self, now: datetime) -> bool:
        """Lets everybody do what can be done now; whether anything was done."""
        ...

    def next_due(self) -> datetime | None:
        """The time of the next action; None if nothing waits for time alone."""
        ...


class DriverClock(Protocol):
    """A clock that advances only when it is asked to."""

    def now(self) -> datetime: ...

    def advance(self, seconds: float) -> None: ...


class Ending(StrEnum):
    """The way in which a drive came to its end."""

    OVER = "over"  # the plan has ended, or is gone
    STANDSTILL = "standstill"  # nothing will happen any more, or nothing that helps
    OUT_OF_TIME = "out of time"


class SimulationDriver:
    """One plan, driven to its end. `on_round` is called with every round that was made."""

    def __init__(
        self,
        reconciler: Reconciler,
        participants: Participants,
        clock: DriverClock,
        outage_clock: OutageClock,
        *,
        has_news: Callable[[], bool],
        state: Callable[[], object],
        settle: Callable[[], object],
        on_round: Callable[[Round], None],
    ) -> None:
        """`has_news`: whether watches have brought anything since it was last asked. `state` is another value whenever
        anything in the cluster has changed. `settle` lets the cluster's own controllers finish what they do at once
        (garbage collection)."""
        self._reconciler = reconciler
        self._participants = participants
        self._clock = clock
        self._outage_clock = outage_clock
        self._has_news = has_news
        self._state = state
        self._settle = settle
        self._on_round = on_round
        self._begun = self._news_at = self._progress_at = clock.now()
        self._queue = WorkQueue(self._seconds, lambda: 0.0)
        self._is_patient = False
        self._steady: tuple[Round, object, datetime] | None = None

    def run(self, name: str, limit: timedelta) -> Ending:
        """Until the plan is over, nothing moves any more, or `limit` of simulated time has passed."""
        end = self._clock.now() + limit
        quiet_since, in_vain = self._clock.now(), 0
        self._queue.add(name)
        while self._clock.now() < end:
            last, moved = self._until_quiet(name)
            if _is_over(last):
                return Ending.OVER
            if moved:
                quiet_since = self._clock.now()
            in_vain = 0 if self._progress_at == self._clock.now() else in_vain + moved
            due = self._next()
            if due is None or (self._participants.next_due() is None and self._is_still(quiet_since)):
                return Ending.STANDSTILL
            if in_vain > _TRIES_IN_VAIN and self._clock.now() - self._progress_at > timedelta(days=1):
                return Ending.STANDSTILL
            self._clock.advance(max(0.0, (min(due, end) - self._clock.now()).total_seconds()))
        return Ending.OUT_OF_TIME

    def _is_still(self, since: datetime) -> bool:
        return self._clock.now() - since > (_STILL_FOR_A_WINDOW if self._is_patient else _STILL)

    def _until_quiet(self, name: str) -> tuple[Round | None, bool]:
        """Rounds and the simulation's steps in turn, until neither has anything to do at this moment."""
        moved, done = False, None
        for _ in range(_ROUNDS_AT_ONCE):
            again = False
            if self._is_needed(name) and not self._is_settled(name):
                done = self._round(name)
                again = done is not None and not done.problems and done.again
                self._schedule(name, done)
            acted = self._participants.step(self._clock.now())
            self._settle()
            moved = moved or again or acted
            if not (again or acted) or _is_over(done):
                return done, moved
        raise AssertionError("the loop and the simulation run in a circle without time passing")

    def _is_needed(self, name: str) -> bool:
        """True if something has changed for the plan, or its next round is due."""
        if self._has_news():
            self._news_at = self._clock.now()
            self._queue.add(name)
        wait = self._queue.next_in()
        return wait is not None and wait <= 0 and self._queue.take() == name

    def _is_settled(self, name: str) -> bool:
        """True if the round would be the last one again: nothing has changed since, and no wait's time is up. Of most
        waits a rehearsal looks at nothing else."""
        if self._steady is None:
            return False
        last, state, until = self._steady
        if state != self._state() or self._clock.now() > until:
            return False
        self._schedule(name, last)
        return True

    def _round(self, name: str) -> Round | None:
        """None while the API server is away, or where it refused what a round cannot go without."""
        self._steady, state = None, self._state()
        try:
            done = self._reconciler.round(name)
        except (Away, Throttled):
            self._outage_clock.lost()
            return None
        except ClusterError:
            return None
        self._outage_clock.found()
        if done.steady is not None and not done.problems and state == self._state():
            self._steady = done, state, self._clock.now() + timedelta(seconds=min(done.steady, _WINDOW))
        self._on_round(done)
        return done

    def _schedule(self, name: str, done: Round | None) -> None:
        """The longer no watch has brought anything, the later the next look; what one brings is never missed."""
        if done is None:
            self._queue.add(name, _AWAY_RETRY)
        elif done.again and not done.problems:
            self._progress_at = self._clock.now()
            self._queue.add(name)
        elif done.recheck is not None or done.problems:
            quiet = (self._clock.now() - self._news_at).total_seconds()
            self._is_patient = _waits_for_a_window(done)
            self._queue.add(name, max(done.recheck or 1.0, min(quiet, _WINDOW) if self._is_patient else quiet))

    def _next(self) -> datetime | None:
        """The time when the next thing happens, if any does."""
        now, wait = self._clock.now(), self._queue.next_in()
        rounds = now + timedelta(seconds=wait) if wait is not None else None
        found = [time for time in (self._participants.next_due(), rounds) if time is not None]
        return max(min(found), now + timedelta(milliseconds=100)) if found else None

    def _seconds(self) -> float:
        return (self._clock.now() - self._begun).total_seconds()


def _waits_for_a_window(done: Round) -> bool:
    """True if a check holds the plan that is waited for however long it takes."""
    waits = done.decision.waits if done.decision else ()
    return any(wait.check is not None and wait.limit is None and not wait.slow for wait in waits)


def _is_over(last: Round | None) -> bool:
    """True if nothing is left to do for the plan, be it to try the last write again."""
    return last is not None and last.over and not last.problems
