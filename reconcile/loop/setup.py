"""Puts a manager together from what the edges give: a cluster, templates, clocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from reconcile.cluster.protocol import Cluster
from reconcile.loop.deps import ReconcilerDeps
from reconcile.loop.journal import JournalEntry, keep_nothing
from reconcile.loop.lease import Election
from reconcile.loop.logs import Log
from reconcile.loop.manager import Manager, Running
from reconcile.loop.outage_clock import OutageClock
from reconcile.loop.overrides import Overrides
from reconcile.loop.plan_round import PLANS
from reconcile.loop.preconditions import oldest_of
from reconcile.loop.queue import WorkQueue
from reconcile.loop.reconciler import Reconciler
from reconcile.loop.rendering import Rendering
from reconcile.loop.round import Round, RoundResult
from reconcile.loop.served_api import check_served_api
from reconcile.observe.cached import CachedSource
from reconcile.observe.fetching import Read, through_the_proxy
from reconcile.observe.readings import Readings
from reconcile.observe.server_certificates import Dial
from reconcile.probes.look import ReadFailure
from reconcile.schemas import Schemas
from renderer.assemble import TemplateSet
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body, Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class ManagerConfig:
    """`clock` is monotonic, `now` has a time zone. `lease_namespace` is empty where nobody else can run. `read` reads
    the repository's documents; by the API server's proxy if it is not given. `known` is what a facts document says of
    kubelets and certificates: they are not asked then. `overrides` stand in place of values of the templates."""

    cluster: Cluster
    template_set: TemplateSet
    schemas: Schemas
    now: Callable[[], datetime]
    clock: Callable[[], float]
    random: Callable[[], float]
    dial: Dial
    log: Log
    identity: str
    lease_namespace: str = ""
    read: Read | None = None
    on_round: Callable[[Round], None] = lambda done: None
    on_result: Callable[[RoundResult, float], None] = lambda result, seconds: None
    on_standby: Callable[[], None] = lambda: None
    known: Mapping[str, Any] = field(default_factory=dict)
    overrides: Overrides = field(default_factory=dict)
    journal: Callable[[JournalEntry], None] = keep_nothing


def assemble_manager(given: ManagerConfig) -> Manager:
    """A manager that is ready to run."""
    kinds = given.template_set.catalog.kinds
    outage_clock = OutageClock(given.now)
    election = _election(given, outage_clock)
    cluster = given.cluster.guarded(election.require) if election else given.cluster
    made: list[Manager] = []

    def changed(ref: Ref) -> None:
        made[0].wake(ref)

    source = CachedSource(given.cluster, kinds, changed)
    deps = ReconcilerDeps(
        cluster=cluster,
        source=source,
        watched=source.watched,
        rendering=_rendering(given.template_set, given.overrides),
        schemas=given.schemas,
        readings=Readings(given.cluster, kinds, given.now, given.dial, given.known),
        read=given.read or through_the_proxy(given.cluster, kinds),
        now=given.now,
        attended=outage_clock.attended,
    )
    plans = kinds.row(PLAN_API_VERSION, "UpgradePlan").kind
    running = Running(
        reconciler=Reconciler(deps, given.journal),
        source=source,
        queue=WorkQueue(given.clock, given.random),
        outage_clock=outage_clock,
        election=election,
        check_api=lambda: check_served_api(given.cluster, plans, given.schemas, _listed(source)),
        oldest=oldest_of(given.template_set.catalog.values),
        log=given.log,
        clock=given.clock,
        on_round=given.on_round,
        on_result=given.on_result,
        on_standby=given.on_standby,
    )
    made.append(Manager(running))
    return made[0]


def _election(given: ManagerConfig, outage_clock: OutageClock) -> Election | None:
    if not given.lease_namespace:
        return None
    clock, now = given.clock, given.now
    return Election(
        given.cluster, given.lease_namespace, given.identity, clock=clock, now=now, outage_clock=outage_clock
    )


def _listed(source: CachedSource) -> tuple[Body, ...]:
    plans = source.list(PLANS)
    return () if isinstance(plans, ReadFailure) else plans


def _rendering(given: TemplateSet, overrides: Overrides) -> Rendering:
    return Rendering(given.catalog, given.templates, given.spec_fields, overrides)
