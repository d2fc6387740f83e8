"""Times as the API writes them: RFC 3339 in UTC, whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

_FORM = "%Y-%m-%dT%H:%M:%SZ"


@lru_cache(maxsize=4096)  # a status repeats its times in every round
def time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(_FORM)


def span_text(seconds: int) -> str:
    """As a phase declares it: `15m`, `1h30m`."""
    hours, rest = divmod(seconds, 3600)
    parts = ((hours, "h"), (rest // 60, "m"), (rest % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count) or "0s"


@lru_cache(maxsize=4096)
def time_of(text: str) -> datetime:
    """With its time zone. Raises `ValueError`."""
    return datetime.fromisoformat(text)
