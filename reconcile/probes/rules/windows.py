"""Maintenance windows: whether one is open, and when the next one opens.

A text has windows with semicolons between them: days of the week and two times in UTC, such as
`Mon-Fri 22:00-04:00; Sat,Sun 00:00-00:00`. A window belongs to the day that it opens on; without days it opens on each.
Minutes are whole tens, since checks judge by the time at which the present ten minutes began.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from reconcile.probes.rules.call import RuleCall
from reconcile.probes.verdict import Verdict, passed, waiting

DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_RANGE = f"({'|'.join(DAYS)})(-({'|'.join(DAYS)}))?"
_TIME = "([01][0-9]|2[0-3]):[0-5]0"
_WINDOW = re.compile(f"({_RANGE}(,{_RANGE})* +)?{_TIME}-{_TIME}")
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenanceWindow:
    """`days` counts from Monday, which is 0; `begin` from midnight."""

    days: frozenset[int]
    begin: timedelta
    length: timedelta

    def openings(self, now: datetime) -> Iterator[datetime]:
        """From yesterday, whose window may still be open, to the same day of next week."""
        today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        for day in (today + _DAY * number for number in range(-1, 8)):
            if day.weekday() in self.days:
                yield day + self.begin

    def is_open(self, now: datetime) -> bool:
        return any(begin <= now < begin + self.length for begin in self.openings(now))


def readable(call: RuleCall) -> Verdict:
    wrong = [part for part in _parts(call.text("windows")) if not _WINDOW.fullmatch(part)]
    if wrong:
        return waiting(f"{wrong[0]!r} is not a maintenance window such as 'Mon-Fri 22:00-04:00', in whole ten minutes")
    return passed("the maintenance windows can be read")


def is_open(call: RuleCall) -> Verdict:
    """Text that cannot be read opens no window."""
    windows = [window_of(part) for part in _parts(call.text("windows")) if _WINDOW.fullmatch(part)]
    if any(window.is_open(call.now) for window in windows):
        return passed("a maintenance window is open")
    ahead = [begin for window in windows for begin in window.openings(call.now) if begin > call.now]
    following = f"; the next one opens on {min(ahead):%A, %Y-%m-%d at %H:%M} UTC" if ahead else ""
    return waiting(f"no maintenance window is open{following}")


def window_of(text: str) -> MaintenanceWindow:
    """A window in the form that is allowed. One that ends when it begins lasts for a day."""
    *days, times = text.split()
    begin, end = (timedelta(hours=int(time[:2]), minutes=int(time[3:])) for time in times.split("-"))
    length = (end - begin) % _DAY or _DAY
    return MaintenanceWindow(days=frozenset(_days(days[0]) if days else range(7)), begin=begin, length=length)


def _days(text: str) -> Iterator[int]:
    for part in text.split(","):
        first, _, last = part.partition("-")
        begin, end = DAYS.index(first), DAYS.index(last or first)
        yield from ((begin + number) % 7 for number in range((end - begin) % 7 + 1))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(";") if part.strip()]
