"""The work queue: which plans need a round, and when. A plan is queued once; after failures it is retried with
exponential backoff and jitter."""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition

FIRST_PAUSE = 0.005
LONGEST_PAUSE = 30.0


class WorkQueue:
    """Names, and when they are due by a monotonic clock. One worker takes, any thread adds. `random` gives [0, 1)."""

    def __init__(self, clock: Callable[[], float], random: Callable[[], float]) -> None:
        self._clock = clock
        self._random = random
        self._due: dict[str, float] = {}
        self._failures: dict[str, int] = {}
        self._changed = Condition()
        self._stopped = False

    def add(self, name: str, after: float = 0.0) -> None:
        """Queues `name` for a round in `after` seconds; if it is queued already, the earlier time holds."""
        with self._changed:
            at = self._clock() + after
            self._due[name] = min(at, self._due.get(name, at))
            self._changed.notify_all()

    def failed(self, name: str) -> None:
        """Queues `name` again after a delay that doubles with each failure."""
        failures = self._failures.get(name, 0)
        self._failures[name] = failures + 1
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(failures, 16))
        self.add(name, pause * (0.5 + self._random() / 2))

    def succeeded(self, name: str) -> None:
        """Resets the backoff."""
        self._failures.pop(name, None)

    def take(self) -> str | None:
        """The next name that is due, blocking until there is one; None once stopped."""
        with self._changed:
            while not self._stopped:
                wait = self._next_wait()
                if wait is not None and wait <= 0:
                    name = min(self._due, key=lambda item: (self._due[item], item))
                    del self._due[name]
                    return name
                self._changed.wait(wait)
            return None

    def next_in(self) -> float | None:
        """Seconds until the next name is due, negative if it is overdue; None if the queue is empty."""
        with self._changed:
            return self._next_wait()

    @property
    def depth(self) -> int:
        """The number of names that are due now."""
        with self._changed:
            now = self._clock()
            return sum(at <= now for at in self._due.values())

    def stop(self) -> None:
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def _next_wait(self) -> float | None:
        return min(self._due.values()) - self._clock() if self._due else None
