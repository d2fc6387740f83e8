"""How many examples a property is tried with."""

from __future__ import annotations

from hypothesis import settings

FULL, SHORT = 100, 25
"""Per cent, and what Hypothesis itself tries where a test says nothing."""


def examples(count: int) -> int:
    """In a full run `count`; in a short one (`--short`) the part of it that conftest.py has chosen by its profile."""
    assert settings.default is not None
    return max(1, count * settings.default.max_examples // FULL)
