"""Times as the API writes them: RFC 3339 in UTC, whole seconds."""

from __future__ import annotations

from datetime import UTC, datetime

_FORM = "%Y-%m-%dT%H:%M:%SZ"


def time_text(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime(_FORM)


def time_of(text: str) -> datetime:
    """With its time zone. Raises `ValueError`."""
    return datetime.fromisoformat(text)
