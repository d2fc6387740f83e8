"""Drives a world by itself, in a thread, with a clock that runs faster than the one on the wall: for a real server."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Event, Thread

from support.changes import Changes

from reconcile.simulator.actors.simulation import Simulation

PAUSE = 0.05


class SpedUpClock:
    """`speed` seconds pass for each one on the wall, from now on."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._start = datetime.now(UTC)
        self._zero = time.monotonic()

    def now(self) -> datetime:
        return self._start + timedelta(seconds=(time.monotonic() - self._zero) * self._speed)


@contextmanager
def driven(world: Simulation, clock: SpedUpClock, changes: Changes) -> Iterator[None]:
    """Within, the world goes on by itself. What it raised is raised at the end of the block."""
    stop, raised = Event(), list[BaseException]()

    def drive() -> None:
        try:
            while not stop.is_set():
                changes.look()
                if not world.step(clock.now()):
                    stop.wait(PAUSE)
        except BaseException as error:
            raised.append(error)

    thread = Thread(target=drive, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
        if raised:
            raise raised[0]
