"""The embedded cluster: an API server in process, with the semantics of a real one, for rehearsals and tests.

It holds the objects; clients (`client`) speak to it over the Protocol. Time is the given clock's, nothing sleeps, and
controllers do not run in the background: `collect` lets the garbage collector work.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reconcile.simulator.apiserver import kubevirt, seeding
from reconcile.simulator.apiserver.backends import Backends
from reconcile.simulator.apiserver.cel_rules import UncheckedRule
from reconcile.simulator.apiserver.clock import Clock
from reconcile.simulator.apiserver.collector import Collector
from reconcile.simulator.apiserver.deletion import Deletions
from reconcile.simulator.apiserver.embedded_client import EmbeddedClient
from reconcile.simulator.apiserver.registry import DEFINITION, Registry
from reconcile.simulator.apiserver.requests import Authorizer, Everything, Hook, no_hook
from reconcile.simulator.apiserver.schema_files import packaged_definitions
from reconcile.simulator.apiserver.server_parts import Server
from reconcile.simulator.apiserver.store import Store, StoreChange, key_of
from reconcile.simulator.apiserver.write_handlers import Writes
from reconcile.status.times import time_text
from renderer.model.ref import Body

_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


class EmbeddedCluster:
    """One cluster. It starts with the usual namespaces and the kinds of `definitions`, by default our own."""

    def __init__(self, clock: Clock, definitions: Iterable[Body] | None = None) -> None:
        self.clock = clock
        self.store = Store(self._observe)
        self.registry = Registry()
        self.writes = Writes(self.store, self.registry, clock)
        self.deletions = Deletions(self.store, self.writes, clock)
        self.backends = Backends(self.store)
        self._collector = Collector(self.store, self.writes, self.deletions, clock)
        machines = kubevirt.VirtualMachines(self.store, self.writes)
        self.backends.serve_put("VirtualMachine", "start", machines.start)
        self.backends.serve_put("VirtualMachine", "stop", machines.stop)
        self._server = Server(
            clock=clock,
            store=self.store,
            registry=self.registry,
            writes=self.writes,
            deletions=self.deletions,
            backends=self.backends,
        )
        clock.listen(self._server.wake)
        self.seed(map(seeding.namespace, _NAMESPACES))
        self.seed(packaged_definitions() if definitions is None else definitions)

    def seed(self, objects: Iterable[Body]) -> None:
        """Seeds objects as if they had always existed; a List stands for its items.

        uid, resourceVersion, managedFields and status are kept where given. Kinds that nobody defined are served open,
        and namespaces that are used are made. No watch reports any of this: seed first.
        """
        with self.store.lock:
            bodies = [self._live(body) for body in seeding.flattened(objects)]
            self.store.put_as_is(bodies)
            missing = seeding.missing_namespaces(bodies, self.store.everything())
            self.store.put_as_is(self._live(body) for body in missing)
            self.store.raise_version(max((_version(body) for body in bodies), default=0))

    def client(self, *, access: Authorizer | None = None, on_write: Hook = no_hook) -> EmbeddedClient:
        """A client with its own permissions, faults and request log; `on_write` is called before and after each
        write."""
        return EmbeddedClient(self._server, access=access or Everything(), on_write=on_write)

    def collect(self) -> int:
        """Runs the garbage collector and the namespace controller until they are done; returns how much they did."""
        return self._collector.collect()

    def compact(self) -> None:
        """Forgets history, as etcd does after some minutes: to a watch from before now it is gone."""
        with self.store.lock:
            self.store.compact()

    def unchecked_rules(self, *managers: str) -> tuple[UncheckedRule, ...]:
        """The CEL rules that applied to what these field managers wrote and could not be evaluated; each once."""
        found = (rule for manager in managers for rule in self.writes.unchecked_rules(manager))
        return tuple(dict.fromkeys(found))

    def _live(self, body: Body) -> dict[str, Any]:
        served = seeding.served_for(self.registry, body)
        made = seeding.live(served, body, version=self.store.version, time=time_text(self.clock.now()))
        if served.kind == DEFINITION:
            self.registry.learn(made)
        return made

    def _establish(self, definition: Body) -> None:
        if not (definition.get("status") or {}).get("conditions"):
            status = _established(definition, time_text(self.clock.now()))
            self.store.put({**definition, "status": status})

    def _observe(self, change: StoreChange) -> None:
        """Kinds are served as long as their definitions exist."""
        if change.kind != key_of(DEFINITION):
            return
        if change.after is not None:
            self.registry.learn(change.after)
            self._establish(change.after)
        elif change.before is not None:
            for kind in self.registry.forget(change.before):
                for body in tuple(self.store.all_of(kind)):
                    self.store.remove(body)


def _established(definition: Body, time: str) -> dict[str, Any]:
    """The status that the server's own controllers give to a definition whose kind is served."""
    reported = (
        ("NamesAccepted", "NoConflicts", "no conflicts found"),
        ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
    )
    conditions = [
        {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time}
        for kind, reason, message in reported
    ]
    return {**definition["status"], "acceptedNames": definition["spec"]["names"], "conditions": conditions}


def _version(body: Body) -> int:
    text = str(body["metadata"]["resourceVersion"])
    return int(text) if text.isdigit() else 0
