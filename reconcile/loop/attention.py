"""Which time counts: not that in which the API server was away. A cluster that upgrades itself is away now and then."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock

_KEPT = timedelta(days=2)


class Attention:
    """Remembers outages. Thread-safe."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._lock = Lock()
        self._outages: list[tuple[datetime, datetime]] = []
        self._away_since: datetime | None = None

    def lost(self) -> None:
        """The API server does not answer."""
        with self._lock:
            self._away_since = self._away_since or self._now()

    def found(self) -> None:
        """It answers (again)."""
        with self._lock:
            if self._away_since is None:
                return
            now = self._now()
            self._outages = [(start, end) for start, end in self._outages if now - end < _KEPT]
            self._outages.append((self._away_since, now))
            self._away_since = None

    @property
    def away_since(self) -> datetime | None:
        with self._lock:
            return self._away_since

    def attended(self, since: datetime) -> float:
        """Seconds from `since` to now in which the API server was there."""
        with self._lock:
            now = self._now()
            outages = [*self._outages, *([(self._away_since, now)] if self._away_since else [])]
        lost = sum((end - max(start, since)).total_seconds() for start, end in outages if end > since)
        return max(0.0, (now - since).total_seconds() - lost)
