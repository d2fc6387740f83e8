"""When something that takes time is over. Timers start when they are first asked for and never ring by themselves."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime, timedelta


class Timers:
    """One actor's timers, by any key. What is not asked for in a step does not count as awaited."""

    def __init__(self) -> None:
        self._now: datetime | None = None
        self._due: dict[Hashable, datetime | None] = {}
        self._asked: set[Hashable] = set()

    def begin(self, now: datetime) -> None:
        """A new step."""
        self._now = now
        self._asked.clear()

    def passed(self, key: Hashable, lasts: timedelta | None) -> bool:
        """Whether so much time has passed since this was first asked; never, if it lasts for None."""
        now = self._now
        if now is None:
            raise ValueError("begin was not called")
        due = self._due.setdefault(key, None if lasts is None else now + lasts)
        self._asked.add(key)
        return due is not None and now >= due

    def forget(self, key: Hashable) -> None:
        self._due.pop(key, None)
        self._asked.discard(key)

    def next_due(self) -> datetime | None:
        """The next moment at which an answer of the last step will be another."""
        now = self._now
        awaited = (self._due.get(key) for key in self._asked)
        return min((due for due in awaited if due is not None and now is not None and due > now), default=None)
