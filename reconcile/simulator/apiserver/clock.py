"""The simulated clock: time passes when it is advanced, and all waiters are notified."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Protocol


class Clock(Protocol):
    """The clock that the embedded cluster needs."""

    def now(self) -> datetime:
        """With a time zone."""
        ...

    def advance(self, seconds: float) -> None:
        """Lets time pass: a call that hangs does this."""
        ...

    def listen(self, listener: Callable[[], None]) -> None:
        """Calls `listener`, without a lock held, whenever time has passed."""
        ...


class SimulatedClock:
    """A `Clock` that stands still until it is advanced; safe to use from several threads."""

    def __init__(self, start: datetime) -> None:
        self._now = start.astimezone(UTC)
        self._lock = Lock()
        self._listeners: list[Callable[[], None]] = []

    def now(self) -> datetime:
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> None:
        with self._lock:
            self._now += timedelta(seconds=seconds)
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        with self._lock:
            self._listeners.append(listener)
