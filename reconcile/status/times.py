"""Times as the API writes them: RFC 3339 in UTC, whole seconds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_DURATION = re.compile(r"(?:(?P<hours>\d{1,9})h)?(?:(?P<minutes>\d{1,9})m)?(?:(?P<seconds>\d{1,9})s)?")
_LONGEST = timedelta(days=365)
_FORM = "%Y-%m-%dT%H:%M:%SZ"


@lru_cache(maxsize=4096)  # a status repeats its times in every round
def time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(_FORM)


def span_text(seconds: int) -> str:
    """As a phase declares it: `15m`, `1h30m`."""
    hours, rest = divmod(seconds, 3600)
    parts = ((hours, "h"), (rest // 60, "m"), (rest % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


def clock_text(seconds: int) -> str:
    """As a clock shows it: `1:02:03`, `2d 1:02:03`."""
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600}:{rest % 3600 // 60:02}:{rest % 60:02}"
    return f"{days}d {clock}" if days else clock


def age_text(seconds: float) -> str:
    """As kubectl prints an age: two units at most, and only where they matter (`45s`, `3m10s`, `2h5m`, `3d4h`, `40d`).

    Source: k8s.io/apimachinery, package util/duration (`HumanDuration`).
    """
    whole = max(0, int(seconds))
    minutes, hours, days = whole // 60, whole // 3600, whole // 86_400
    for limit, count, unit, rest, small in (
        (120, whole, "s", 0, ""),
        (600, minutes, "m", whole % 60, "s"),
        (3 * 3600, minutes, "m", 0, ""),
        (8 * 3600, hours, "h", minutes % 60, "m"),
        (48 * 3600, hours, "h", 0, ""),
        (8 * 86_400, days, "d", hours % 24, "h"),
    ):
        if whole < limit:
            return f"{count}{unit}{rest}{small}" if rest else f"{count}{unit}"
    return f"{days}d"


def duration_of(text: str) -> timedelta | None:
    """`90s`, `5m`, `1h30m`, a year at most; None for anything else. A caller that needs a time to pass refuses zero."""
    match = _DURATION.fullmatch(text)
    parts = {unit: int(value) for unit, value in match.groupdict().items() if value} if match else {}
    duration = timedelta(**parts)
    return duration if parts and duration <= _LONGEST else None


@lru_cache(maxsize=4096)
def time_of(text: str) -> datetime:
    """With its time zone. Raises `ValueError`."""
    return datetime.fromisoformat(text)
