"""Prepares a rehearsal and runs it to its end, on a simulated clock. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from reconcile.loop.deps import ReconcilerDeps
from reconcile.loop.journal import JournalEntry, keep_nothing
from reconcile.loop.outage_clock import OutageClock
from reconcile.loop.preconditions import check_preconditions, oldest_of
from reconcile.loop.reconciler import Reconciler
from reconcile.loop.rendering import Rendering
from reconcile.loop.round import Round
from reconcile.objects import FIELD_MANAGER, as_written
from reconcile.observe.fetching import through_the_proxy
from reconcile.observe.readings import Readings
from reconcile.preflight.on_inputs import given_in
from reconcile.schemas import packaged_schemas
from reconcile.simulator.actors.faults import ApiOutage, FaultPlan, InjectedFault
from reconcile.simulator.actors.settings import Settings
from reconcile.simulator.actors.simulation import ClusterVersion, Simulation
from reconcile.simulator.actors.simulation_log import SimulationLog
from reconcile.simulator.apiserver.cel_rules import UncheckedRule
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.embedded_client import EmbeddedClient
from reconcile.simulator.apiserver.requests import Authorizer, Hook, no_hook
from reconcile.simulator.apiserver.seeding import namespace
from reconcile.simulator.rehearsal.driver import Ending, Participants, SimulationDriver
from reconcile.simulator.rehearsal.operator import Operator
from reconcile.simulator.rehearsal.watches import WatchedSource
from reconcile.status.plan import SUCCEEDED
from reconcile.status.times import time_of
from renderer.assemble import TemplateSet
from renderer.catalog.kinds import Kinds
from renderer.documents import Inputs, plan_of
from renderer.errors import Problems, problem
from renderer.model.path import look_up
from renderer.model.plan_api import PLAN_API_VERSION, plan_ref
from renderer.model.ref import Body

HARVESTER_NAMESPACES = ("cattle-system", "fleet-local", "harvester-system", "longhorn-system")
"""Those that every Harvester cluster has, whether the inputs have objects in them or not."""

_CREATOR = "kubectl-create"

LIMIT, LIMIT_OF_NODE = timedelta(days=7), timedelta(hours=1)
"""Simulated time after which an upgrade that has not ended counts as one that never will, and how much longer it may
take for each node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalResult:
    """`plan` is as it is at the end; None if it is gone. `refused` says why the loop would refuse to start on this
    cluster; the rehearsal then shows what would have happened. `not_injected` are the faults whose operation never took
    place, `operations` those that did. `unchecked` are CEL rules that the embedded API server could not evaluate."""

    ending: Ending
    started: datetime
    ended: datetime
    plan: Body | None
    last: Round | None
    log: SimulationLog
    refused: str = ""
    not_injected: tuple[InjectedFault | ApiOutage, ...] = ()
    operations: frozenset[str] = frozenset()
    unchecked: tuple[UncheckedRule, ...] = ()

    @property
    def succeeded(self) -> bool:
        return (
            not self.refused
            and self.plan is not None
            and (self.plan.get("status") or {}).get("currentPhase") == SUCCEEDED
        )


@dataclass
class Rehearsal:
    """A cluster and everybody who acts on it. `play` runs the upgrade to its end; tests use the parts."""

    cluster: EmbeddedCluster
    client: EmbeddedClient
    clock: SimulatedClock
    participants: Participants
    simulation: Simulation
    reconciler: Reconciler
    outage_clock: OutageClock
    name: str
    deps: ReconcilerDeps
    source: WatchedSource
    limit: timedelta

    def unchecked(self) -> Rehearsal:
        """The same, in which the loop carries out no pre-flight checks."""
        deps = replace(self.deps, checked=False)
        return replace(self, deps=deps, reconciler=self.reconciler.on(deps))

    def play(self, on_round: Callable[[Round], None]) -> RehearsalResult:
        started = self.clock.now()
        refused = self._refused()
        last: Round | None = None

        def keep(done: Round) -> None:
            nonlocal last
            last = done
            on_round(done)

        ending = self.drive(self.reconciler, keep).run(self.name, self.limit)
        ended, plan = self.clock.now(), self.deps.source.get(plan_ref(self.name))
        if ending is Ending.OVER:
            self._play_on()
        return RehearsalResult(
            ending=ending,
            started=started,
            ended=ended,
            plan=plan if isinstance(plan, dict) else None,
            last=last,
            log=self.log,
            refused=refused,
            not_injected=self.simulation.faults.not_injected,
            operations=frozenset(self.simulation.faults.operations),
            unchecked=self.cluster.unchecked_rules(_CREATOR, FIELD_MANAGER),
        )

    def _play_on(self) -> None:
        """The simulation alone, for a few minutes: a plan does not wait for virtual machines that start again."""
        for _ in range(60):
            self.clock.advance(5.0)
            self.participants.step(self.clock.now())
            self.cluster.collect()

    def drive(
        self, reconciler: Reconciler, on_round: Callable[[Round], None], source: WatchedSource | None = None
    ) -> SimulationDriver:
        """Drives the plan with that loop, which reads from `source` if that is not the rehearsal's own."""
        return SimulationDriver(
            reconciler,
            self.participants,
            self.clock,
            self.outage_clock,
            has_news=(source or self.source).has_news,
            state=lambda: (self.cluster.store.version, self.client.faults.cuts),
            settle=self.cluster.collect,
            on_round=on_round,
        )

    @property
    def log(self) -> SimulationLog:
        return self.simulation.log

    def _refused(self) -> str:
        try:
            check_preconditions(self.deps.source, oldest_of(self.deps.rendering.catalog.values))
        except Problems as error:
            return error.problems[0].message
        return ""


def prepare(
    inputs: Inputs,
    template_set: TemplateSet,
    *,
    start: datetime,
    faults: FaultPlan | None = None,
    resume_after: timedelta = timedelta(minutes=10),
    access: Authorizer | None = None,
    on_write: Hook = no_hook,
    journal: Callable[[JournalEntry], None] = keep_nothing,
) -> Rehearsal:
    """The user's cluster, with the plan created in it as `kubectl create` does. A paused node is resumed after
    `resume_after`. The loop may do what `access` permits, by default everything. `journal` is given every round that
    decides something. Time begins at `start`, or where the newest object was created if that is later: a node that
    is there when the upgrade begins must not count as one that joins during it.

    Raises `Problems`: no plan, or no release.
    """
    plan = plan_of(inputs).body
    start = max([start, *_created(inputs)])
    clock = SimulatedClock(start)
    cluster, kinds = _cluster_of(inputs, clock), template_set.catalog.kinds
    client = cluster.client(access=access, on_write=on_write)
    outage_clock = OutageClock(clock.now)
    seconds = lambda: (clock.now() - start).total_seconds()  # noqa: E731
    source = WatchedSource(client, cluster.store, kinds, seconds, given_in(inputs, kinds).never_known)
    deps = _deps_of(inputs, template_set, client, source, clock, outage_clock)
    simulation = _simulation_of(inputs, cluster, kinds, faults, client.faults.away)
    ref = plan_ref(str(plan["metadata"]["name"]))
    cluster.client().create(kinds.row(PLAN_API_VERSION, "UpgradePlan").kind, as_written(plan), field_manager=_CREATOR)
    return Rehearsal(
        cluster=cluster,
        client=client,
        clock=clock,
        participants=_Everybody(simulation, Operator(cluster.client(), kinds, ref, resume_after)),
        simulation=simulation,
        reconciler=Reconciler(deps, journal),
        outage_clock=outage_clock,
        name=ref.name,
        deps=deps,
        source=source,
        limit=LIMIT + LIMIT_OF_NODE * sum(item.body.get("kind") == "Node" for item in inputs.objects),
    )


def _created(inputs: Inputs) -> Iterator[datetime]:
    """Yields the time when each object was created that says so."""
    for source in inputs.objects:
        if isinstance(text := look_up(source.body, ("metadata", "creationTimestamp")), str):
            yield time_of(text)


def _cluster_of(inputs: Inputs, clock: SimulatedClock) -> EmbeddedCluster:
    cluster = EmbeddedCluster(clock)
    cluster.seed(namespace(name) for name in HARVESTER_NAMESPACES)
    cluster.seed(source.body for source in inputs.objects)
    return cluster


def _deps_of(
    inputs: Inputs,
    template_set: TemplateSet,
    client: EmbeddedClient,
    source: WatchedSource,
    clock: SimulatedClock,
    outage_clock: OutageClock,
) -> ReconcilerDeps:
    kinds = template_set.catalog.kinds
    return ReconcilerDeps(
        cluster=client,
        source=source,
        watched=source.watched,
        rendering=Rendering(template_set.catalog, template_set.templates, template_set.spec_fields),
        schemas=packaged_schemas(),
        readings=Readings(client, kinds, clock.now, _nobody_answers, _facts(inputs)),
        read=through_the_proxy(client, kinds),
        now=clock.now,
        attended=outage_clock.attended,
    )


def _simulation_of(
    inputs: Inputs,
    cluster: EmbeddedCluster,
    kinds: Kinds,
    faults: FaultPlan | None,
    away: Callable[[float], None],
) -> Simulation:
    """Harvester and Rancher, who also answer the reads that the API server passes on to them."""
    simulation = Simulation.of(
        cluster.client(),
        kinds,
        settings_of(inputs),
        faults=faults,
        away=away,
        version=ClusterVersion(
            now=lambda: cluster.store.version,
            changes=cluster.store.changes_of,
        ),
    )
    for (kind, subresource), reader in simulation.readers.items():
        cluster.backends.serve_read(kind, subresource, reader)
    return simulation


class _Everybody:
    """The simulation and the operator, as one."""

    def __init__(self, *participants: Participants) -> None:
        self._participants = participants

    def step(self, now: datetime) -> bool:
        acted = [each.step(now) for each in self._participants]
        return any(acted)

    def next_due(self) -> datetime | None:
        return min((due for each in self._participants if (due := each.next_due()) is not None), default=None)


def settings_of(inputs: Inputs) -> Settings:
    """The facts that the simulation takes from the inputs. Raises `Problems` where there is no release."""
    if inputs.release is None:
        raise problem(
            "MissingInput",
            "the release file is required: it says what the upgrade installs",
            remedy="add the release's harvester-release.yaml to the inputs, or name it with --release",
        )
    return Settings.given(inputs.release.body, inputs.facts)


def _facts(inputs: Inputs) -> dict[str, Any]:
    """The certificates of the inputs; all others are taken as valid."""
    return {"certificates": inputs.facts.get("certificates") or {}}


def _nobody_answers(_address: str, _port: int) -> datetime | None:
    raise OSError("a rehearsal reads no certificate from the network; give its end date in a facts document")
