"""Waiting for another process to come round: the one place where the fixture sleeps."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE = 0.03
PATIENCE = 240.0
"""Seconds; for a machine with much else to do. Nothing that works takes so long on a quiet one."""


def until(what: str, look: Callable[[], T], seconds: float = PATIENCE) -> T:
    """Looks again and again until the answer is truthy, and returns it. Raises TimeoutError that names `what`."""
    deadline = time.monotonic() + seconds
    while not (answer := look()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s; last answer {answer!r}")
        time.sleep(PAUSE)
    return answer
