"""Counts time, except for that in which the API server was unavailable or no loop ran. A cluster that upgrades itself
is unavailable now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from threading import Lock

_KEPT = timedelta(days=2)
_REMEMBERED = 50
"""The number of outages that are passed on; the oldest ones are dropped first."""

Outage = tuple[datetime, datetime]


class OutageClock:
    """Remembers outages. Thread-safe."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = Lock()
        self._outages: tuple[Outage, ...] = ()
        self._away_since: datetime | None = None
        self._away = 0.0

    def lost(self) -> None:
        """The API server does not answer."""
        with self._lock:
            self._away_since = self._away_since or self._now()

    def found(self) -> None:
        """The API server answers (again)."""
        with self._lock:
            since, self._away_since = self._away_since, None
            self._away += _seconds(since, self._now())
        if since is not None:
            self._add((since, self._now()))

    def missed(self, since: datetime) -> None:
        """Nobody has looked from then until now."""
        self._add((since, self._now()))

    def recall(self, text: str) -> None:
        """Outages that another loop has seen, as it has `reported` them. Text of another form is ignored."""
        self._add(*(outage for part in text.split() if (outage := _outage_of(part)) is not None))

    def reported(self) -> str:
        """The outages for the next loop: intervals of ISO 8601, a space between them."""
        with self._lock:
            return " ".join(f"{start.isoformat()}/{end.isoformat()}" for start, end in self._outages)

    @property
    def away_since(self) -> datetime | None:
        with self._lock:
            return self._away_since

    @property
    def away_seconds(self) -> float:
        """Seconds of all outages that this one has seen, up to now."""
        with self._lock:
            return self._away + _seconds(self._away_since, self._now())

    def attended(self, since: datetime) -> float:
        """Seconds from `since` to now in which the API server was available, and a loop ran."""
        with self._lock:
            now = self._now()
            away = ((self._away_since, now),) if self._away_since else ()
            self._outages = tuple(_past(self._outages, now))
            outages = _merged((*self._outages, *away))
        lost = sum((end - max(start, since)).total_seconds() for start, end in outages if end > since)
        return max(0.0, (now - since).total_seconds() - lost)

    def _add(self, *outages: Outage) -> None:
        with self._lock:
            now = self._now()
            recent = now - _KEPT
            known = (outage for outage in _past((*self._outages, *outages), now) if outage[0] < outage[1])
            self._outages = _merged(outage for outage in known if outage[1] > recent)[-_REMEMBERED:]


def _seconds(since: datetime | None, now: datetime) -> float:
    return max(0.0, (now - since).total_seconds()) if since else 0.0


def _merged(outages: Iterable[Outage]) -> tuple[Outage, ...]:
    """In their order, those that overlap as one."""
    found: list[Outage] = []
    for start, end in sorted(outages):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)


def _past(outages: Iterable[Outage], now: datetime) -> Iterator[Outage]:
    """Up to now: a clock that was ahead, here or elsewhere, must not make time stand still."""
    return ((start, min(end, now)) for start, end in outages if start < now)


def _outage_of(text: str) -> Outage | None:
    try:
        start, end = (datetime.fromisoformat(part) for part in text.split("/"))
    except ValueError:
        return None
    return (start, end) if start.tzinfo and end.tzinfo else None
