"""The parts of the embedded API server that its clients speak to."""

from __future__ import annotations

from dataclasses import dataclass

from reconcile.rehearsal.backends import Backends
from reconcile.rehearsal.clock import Clock
from reconcile.rehearsal.deletion import Deletions
from reconcile.rehearsal.registry import Registry
from reconcile.rehearsal.store import Store
from reconcile.rehearsal.writes import Writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server; all of its clients share it."""

    clock: Clock
    store: Store
    registry: Registry
    writes: Writes
    deletions: Deletions
    backends: Backends

    def wake(self) -> None:
        """Lets open watches look at the clock and at their faults again."""
        with self.store.changed:
            self.store.changed.notify_all()
