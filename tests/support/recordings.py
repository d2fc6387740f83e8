"""Rehearsals that several tests look at, each played once a process and written down as it went.

Nobody changes what is recorded: a test that wants to act plays a rehearsal of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from reconcile.loop.journal import JournalEntry
from reconcile.loop.round import Round
from reconcile.simulator.rehearsal.rehearsal import Rehearsal, RehearsalResult
from support.final_state import FinalState, final_state_of
from support.rehearsals import permissions, rehearsal_of, settle

SEVERAL_DAYS = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """`rounds` with the simulated time at which each was done; `rehearsal` as it is
    when everybody else has finished too."""

    rehearsal: Rehearsal
    result: RehearsalResult
    rounds: tuple[tuple[datetime, Round], ...]
    entries: tuple[JournalEntry, ...]

    def __iter__(self) -> Iterator[tuple[datetime, Round]]:
        return iter(self.rounds)


@cache
def recording(example: str, *, limit: timedelta = SEVERAL_DAYS, **faults: tuple[str, ...]) -> Recording:
    """The example under the loop's own permissions, with what goes wrong: `fail=("pre-drain on charlie-2",)`."""
    entries: list[JournalEntry] = []
    rounds: list[tuple[datetime, Round]] = []
    asked: dict[str, Any] = {name: list(value) for name, value in faults.items()}
    rehearsal = replace(rehearsal_of(example, access=permissions(), journal=entries.append, **asked), limit=limit)
    result = rehearsal.play(lambda done: rounds.append((rehearsal.clock.now(), done)))
    settle(rehearsal)
    return Recording(rehearsal=rehearsal, result=result, rounds=tuple(rounds), entries=tuple(entries))


@cache
def undisturbed_end(example: str) -> FinalState:
    """How the example's upgrade ends if nothing goes wrong."""
    return final_state_of(recording(example).rehearsal, example)
