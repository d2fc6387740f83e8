"""The parts of one embedded API server, which all of its clients share."""

from __future__ import annotations

from dataclasses import dataclass

from reconcile.simulator.apiserver.backends import Backends
from reconcile.simulator.apiserver.clock import Clock
from reconcile.simulator.apiserver.deletion import Deletions
from reconcile.simulator.apiserver.registry import Registry
from reconcile.simulator.apiserver.store import Store
from reconcile.simulator.apiserver.write_handlers import Writes


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server. Its parts hold their own state."""

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
