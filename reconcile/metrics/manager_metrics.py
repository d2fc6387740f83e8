"""Gathers the figures of one manager: what is reported as it happens, and what is read when metrics are scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from threading import Lock

from reconcile.cluster.meter import MadeCall
from reconcile.loop.manager import ManagerFigures
from reconcile.loop.round import Round, RoundResult
from reconcile.metrics.exposition import Instruments
from reconcile.metrics.metric_table import (
    API_CALLS,
    API_SECONDS,
    BUILD_INFO,
    CERTIFICATE_EXPIRY,
    LEADER,
    LEASE_TRANSITIONS,
    OUTAGE_SECONDS,
    QUEUE_DEPTH,
    ROUND_SECONDS,
    ROUNDS,
    WATCH_RESTARTS,
    WEBHOOK_REQUESTS,
    WEBHOOK_SECONDS,
    Sample,
)
from reconcile.metrics.plan_samples import plan_samples

MOST_PLANS = 50
"""Plans that have samples, the last ones that had a round."""

_OPERATIONS = ("CREATE", "UPDATE", "DELETE", "CONNECT")
"""Those of admission reviews. A client may send any word, and each would be a time series."""

_COUNTED = (ROUNDS, ROUND_SECONDS, API_CALLS, API_SECONDS, WEBHOOK_REQUESTS, WEBHOOK_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedAt:
    """The places to ask for figures. `certificates` gives the ends of those that are served with, by name."""

    figures: Callable[[], ManagerFigures]
    certificates: Callable[[], Mapping[str, datetime]]


class ManagerMetrics:
    """Thread-safe. Without `look_at` there are only the figures of events."""

    def __init__(self, *, version: str, now: Callable[[], datetime]) -> None:
        self._version = version
        self._now = now
        self._lock = Lock()
        self._rounds: dict[str, Round] = {}
        self._looked_at: LookedAt | None = None
        self._instruments = Instruments(_COUNTED, self._samples)

    def look_at(self, looked_at: LookedAt) -> None:
        self._looked_at = looked_at

    def on_call(self, made: MadeCall) -> None:
        self._instruments.count(API_CALLS, made.verb, made.kind, made.code)
        if made.verb != "watch":
            self._instruments.observe(API_SECONDS, made.seconds, made.verb)

    def on_round(self, done: Round) -> None:
        with self._lock:
            self._rounds.pop(done.name, None)
            if done.plan is not None:
                self._rounds[done.name] = replace(done, rendered=None, results=()) if done.over else done
            if len(self._rounds) > MOST_PLANS:
                del self._rounds[next(iter(self._rounds))]

    def on_result(self, result: RoundResult, seconds: float) -> None:
        self._instruments.count(ROUNDS, str(result))
        self._instruments.observe(ROUND_SECONDS, seconds)

    def on_review(self, operation: str, result: str, seconds: float) -> None:
        self._instruments.count(WEBHOOK_REQUESTS, operation if operation in _OPERATIONS else "", result)
        self._instruments.observe(WEBHOOK_SECONDS, seconds)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """See `Instruments.text`."""
        return self._instruments.text(accept)

    def _samples(self) -> Iterator[Sample]:
        yield Sample(metric=BUILD_INFO, labels=(self._version,), value=1)
        if self._looked_at is None:
            return
        figures = self._looked_at.figures()
        yield from _of_manager(figures)
        for name, end in self._looked_at.certificates().items():
            yield Sample(metric=CERTIFICATE_EXPIRY, labels=(name,), value=end.timestamp())
        if figures.leads:  # what another one has done since is not known here
            yield from self._of_plans()

    def _of_plans(self) -> Iterator[Sample]:
        with self._lock:
            rounds = tuple(self._rounds.values())
        for done in rounds:
            yield from plan_samples(done, self._now())


def _of_manager(figures: ManagerFigures) -> Iterator[Sample]:
    yield Sample(metric=LEADER, value=float(figures.leads))
    yield Sample(metric=QUEUE_DEPTH, value=figures.queued)
    yield Sample(metric=OUTAGE_SECONDS, value=figures.away_seconds)
    if figures.transitions is not None:
        yield Sample(metric=LEASE_TRANSITIONS, value=figures.transitions)
    for kind, count in figures.interruptions.items():
        yield Sample(metric=WATCH_RESTARTS, labels=(kind,), value=count)
