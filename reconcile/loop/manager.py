"""The loop in a process: watches queue plans, one worker runs their rounds, a Lease decides who may write.

Threads: one for each watch, one for the lease, one worker (the caller's). It ends gracefully: the write that is under
way is finished, the lease is given up, and the next leader goes on from the status.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import Event, Thread
from traceback import format_exception
from typing import TypeVar

from reconcile.cluster.errors import Away, ClusterError, Throttled, text_of
from reconcile.loop.lease import RETRY, Election
from reconcile.loop.logs import Log
from reconcile.loop.outage_clock import OutageClock
from reconcile.loop.plan_round import PLANS
from reconcile.loop.preconditions import check_preconditions
from reconcile.loop.queue import WorkQueue
from reconcile.loop.reconciler import Reconciler
from reconcile.loop.round import Round, RoundResult
from reconcile.observe.cached import CachedSource
from reconcile.probes.look import ReadFailure
from renderer.errors import Problem
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Ref

_AWAY_PAUSE = 1.0
_API_PAUSE = 5.0
"""Seconds after which a definition of UpgradePlan that lacks fields is looked at again."""

_Read = TypeVar("_Read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """The parts of a manager. `election` is None where nobody else can run. `oldest` is the oldest release that a
    cluster may run for this program to begin. `check_api` reports what the cluster's definition of UpgradePlan lacks.
    `on_result` receives how each attempt at a round ended and how many seconds it took, on the monotonic `clock`.
    `on_standby` is called every two seconds while another one leads."""

    reconciler: Reconciler
    source: CachedSource
    queue: WorkQueue
    outage_clock: OutageClock
    election: Election | None
    oldest: str
    check_api: Callable[[], Problem | None]
    log: Log
    clock: Callable[[], float]
    on_round: Callable[[Round], None]
    on_result: Callable[[RoundResult, float], None]
    on_standby: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerFigures:
    """Figures of a manager at one moment. `transitions` is None where there is no Lease, or none was seen yet;
    `interruptions` counts those of watches, by kind."""

    leads: bool
    transitions: int | None
    queued: int
    interruptions: Mapping[str, int]
    away_seconds: float


class Manager:
    """Runs until it is stopped."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._stopped = Event()
        self._has_fitting_api = False

    @property
    def ready(self) -> bool:
        """In step with the cluster, or standing by for the leader; never where the cluster's definition of UpgradePlan
        lacks what this program writes."""
        election = self._running.election
        if not self._has_fitting_api:
            return False
        return self._running.source.synced or (election is not None and not election.leads())

    def leads(self) -> bool:
        """True if this one may write now."""
        return self._running.election is None or self._running.election.leads()

    def must_lead(self) -> None:
        """Raises `LostLease` if it may not: a guard for others that write in its name."""
        if self._running.election is not None:
            self._running.election.require()

    def figures(self) -> ManagerFigures:
        running = self._running
        return ManagerFigures(
            leads=self.leads(),
            transitions=running.election.transitions if running.election else None,
            queued=running.queue.depth,
            interruptions=running.source.interruptions(),
            away_seconds=running.outage_clock.away_seconds,
        )

    def run(self) -> None:
        """Works in the caller's thread until `stop`. Raises `Problems` on a cluster that it is not made for."""
        try:
            self._wait_for_fitting_api()
            self._check_cluster()
            self._stand_for_election()
        finally:
            self._running.source.stop()

    def stop(self) -> None:
        """Requests the end; may be called from a signal handler."""
        self._stopped.set()
        self._running.queue.stop()

    def wake(self, ref: Ref) -> None:
        """Queues the plan that has changed, or every plan that may look at the changed object."""
        if (ref.api_version, ref.kind) == (PLAN_API_VERSION, "UpgradePlan"):
            self._running.queue.add(ref.name)
        self._wake_all()

    def _wake_all(self) -> None:
        for name in self._running.reconciler.active:
            self._running.queue.add(name)

    def _wait_for_fitting_api(self) -> None:
        """Nothing is written before, not even the Lease."""
        said: Problem | None = None
        while not self._stopped.is_set() and not self._has_fitting_api:
            found = self._patiently(self._running.check_api)
            self._has_fitting_api = found is None
            if found is None:
                return
            if found != said:
                said = found
                why = {"why": found.message, "field": found.field, "remedy": found.remedy}
                self._running.log("not ready", why)
            self._stopped.wait(_API_PAUSE)

    def _check_cluster(self) -> None:
        unchecked = self._patiently(lambda: check_preconditions(self._running.source, self._running.oldest))
        if unchecked:
            self._running.log("not checked", {"why": unchecked})

    def _stand_for_election(self) -> None:
        elections = Thread(target=self._hold_the_lease, name="lease", daemon=True)
        elections.start()
        try:
            self._work()
        finally:
            self._stopped.set()
            elections.join(timeout=2 * RETRY)
            if self._running.election:
                self._running.election.release()

    def _work(self) -> None:
        self._stand_by()
        self._first_plans()
        while (name := self._running.queue.take()) is not None:
            self._stand_by()
            if not self._stopped.is_set():
                self._round(name)

    def _stand_by(self) -> None:
        """Waits until this one leads, or is stopped."""
        waited = 0
        while not self._stopped.is_set() and not self.leads():
            if waited % 4 == 1:  # not before the first attempt to lead has had its time
                self._running.on_standby()
            waited += 1
            self._stopped.wait(RETRY / 4)

    def _first_plans(self) -> None:
        """Every plan there is; those that come later are brought by the watch."""
        plans = self._patiently(lambda: self._running.source.list(PLANS))
        for plan in () if plans is None or isinstance(plans, ReadFailure) else plans:
            self._running.queue.add(str(plan["metadata"]["name"]))

    def _patiently(self, read: Callable[[], _Read]) -> _Read | None:
        """Reads until it succeeds, however long the API server is unavailable; None once we are to stop."""
        said = ""
        while not self._stopped.is_set():
            try:
                return read()
            except ClusterError as error:
                self._running.outage_clock.lost()
                if said != error.problem.message:
                    said = error.problem.message
                    self._running.log("away", {"why": said})
                self._stopped.wait(_AWAY_PAUSE)
        return None

    def _round(self, name: str) -> None:
        self._wait_for_fitting_api()
        if self._stopped.is_set():
            return
        clock = self._running.clock
        started = clock()
        result = self._attempt(name)
        self._running.on_result(result, clock() - started)

    def _attempt(self, name: str) -> RoundResult:
        """Carries out a round as far as the cluster lets it, and queues the plan for the next."""
        running = self._running
        try:
            done = running.reconciler.round(name)
        except Throttled as error:
            running.queue.add(name, error.retry_after)
            return RoundResult.THROTTLED
        except Away as error:
            running.outage_clock.lost()
            running.log("away", {"plan": name, "why": error.problem.message})
            running.queue.add(name, _AWAY_PAUSE)
            return RoundResult.AWAY
        except ClusterError as error:
            running.log("refused", {"plan": name, "why": text_of(error.problem), "field": error.problem.field})
            self._has_fitting_api = False  # the definition may have been replaced
            running.queue.failed(name)
            return RoundResult.REFUSED
        except Exception as error:  # a bug in this program ends the round, and not the process: other plans continue
            self._report_bug(name, error)
            return RoundResult.BUG
        running.outage_clock.found()
        running.on_round(done)
        self._schedule(name, done)
        return RoundResult.FAILED if done.problems else RoundResult.DONE

    def _report_bug(self, name: str, error: Exception) -> None:
        """Logs it with its traceback, puts it on the plan, and tries again later."""
        message = f"internal error, please report it: {type(error).__name__}: {error}"
        self._running.log("bug", {"plan": name, "why": message, "traceback": "".join(format_exception(error))})
        with suppress(Exception):  # what is broken may be the very plan
            self._running.reconciler.report(name, message)
        self._running.queue.failed(name)

    def _schedule(self, name: str, done: Round) -> None:
        queue = self._running.queue
        if done.problems:
            queue.failed(name)
            return
        queue.succeeded(name)
        if done.again:
            queue.add(name)
        elif done.recheck is not None:
            queue.add(name, done.recheck)
        if done.over:
            self._wake_all()

    def _hold_the_lease(self) -> None:
        election = self._running.election
        said = None
        while election is not None and not self._stopped.is_set():
            election.attempt()
            state = ("leading", "") if election.leads() else ("standing by", election.why)
            if state != said:
                said = state
                self._running.log(state[0], {"why": state[1]} if state[1] else {})
            self._stopped.wait(RETRY)
