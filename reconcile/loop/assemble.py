"""Puts a manager together from what the edges give: a cluster, templates, clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reconcile.cluster.protocol import Cluster
from reconcile.diff.schemas import Schemas
from reconcile.loop.attention import Attention
from reconcile.loop.journal import Entry, keep_nothing
from reconcile.loop.lease import Election, Guarded
from reconcile.loop.logs import RoundLog, Tell
from reconcile.loop.manager import Manager, Running
from reconcile.loop.parts import Parts
from reconcile.loop.queue import WorkQueue
from reconcile.loop.reconciler import Reconciler, Round
from reconcile.loop.rendering import Rendering
from reconcile.loop.suitable import oldest_of
from reconcile.observe.cached import CachedSource
from reconcile.observe.fetching import Read, through_the_proxy
from reconcile.observe.readings import Dial, Readings
from renderer.assemble import Workshop
from renderer.model.ref import Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingredients:
    """`clock` is monotonic, `now` has a time zone. `lease_namespace` is empty where nobody else can run. `read` reads
    the repository's documents; by the API server's proxy if it is not given. `known` is what a facts document says of
    kubelets and certificates: they are not asked then."""

    cluster: Cluster
    workshop: Workshop
    schemas: Schemas
    now: Callable[[], datetime]
    clock: Callable[[], float]
    random: Callable[[], float]
    dial: Dial
    tell: Tell
    identity: str
    lease_namespace: str = ""
    read: Read | None = None
    on_round: Callable[[Round], None] | None = None
    known: Mapping[str, Any] = field(default_factory=dict)
    journal: Callable[[Entry], None] = keep_nothing


def assemble_manager(given: Ingredients) -> Manager:
    """A manager that is ready to run."""
    kinds = given.workshop.catalog.kinds
    election = None
    cluster = given.cluster
    attention = Attention(given.now)
    if given.lease_namespace:
        election = Election(
            given.cluster,
            given.lease_namespace,
            given.identity,
            clock=given.clock,
            now=given.now,
            attention=attention,
        )
        cluster = Guarded(given.cluster, election.leads)
    made: list[Manager] = []

    def changed(ref: Ref) -> None:
        made[0].wake(ref)

    source = CachedSource(given.cluster, kinds, changed)
    parts = Parts(
        cluster=cluster,
        source=source,
        rendering=Rendering(given.workshop.catalog, given.workshop.templates, given.workshop.spec_fields),
        schemas=given.schemas,
        readings=Readings(given.cluster, kinds, given.now, given.dial, given.known),
        read=given.read or through_the_proxy(given.cluster, kinds),
        now=given.now,
        attended=attention.attended,
    )
    log = RoundLog(given.tell)
    running = Running(
        reconciler=Reconciler(parts, given.journal),
        source=source,
        queue=WorkQueue(given.clock, given.random),
        attention=attention,
        election=election,
        oldest=oldest_of(given.workshop.catalog.values),
        tell=given.tell,
        on_round=_both(log, given.on_round),
    )
    made.append(Manager(running))
    return made[0]


def _both(log: RoundLog, also: Callable[[Round], None] | None) -> Callable[[Round], None]:
    def tell(done: Round) -> None:
        log(done)
        if also is not None:
            also(done)

    return tell
