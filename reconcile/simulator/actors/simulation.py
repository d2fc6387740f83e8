"""All actors together: one step, one next moment, one log. The caller says what time it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reconcile.cluster.errors import AlreadyExists, Away, Conflict, NotFound, ServerFailed, Throttled
from reconcile.cluster.protocol import Cluster
from reconcile.simulator.actors.actor_client import ActorClient, EmbeddedPods, KindName, PodHandler
from reconcile.simulator.actors.actor_context import Actor, ActorContext, Outage
from reconcile.simulator.actors.deployments import DeploymentController
from reconcile.simulator.actors.faults import FaultInjector, FaultPlan
from reconcile.simulator.actors.harvester import Addons, ImageImport
from reconcile.simulator.actors.hosts import Hosts
from reconcile.simulator.actors.job_effects import UpgradeJobEffects
from reconcile.simulator.actors.jobs import JobController
from reconcile.simulator.actors.kubevirt import KubeVirt
from reconcile.simulator.actors.longhorn import Longhorn
from reconcile.simulator.actors.machines import Machines
from reconcile.simulator.actors.pods import Kubelets
from reconcile.simulator.actors.rancher import Rancher
from reconcile.simulator.actors.repo import Repo
from reconcile.simulator.actors.settings import Settings
from reconcile.simulator.actors.simulation_log import SimulationLog
from reconcile.simulator.actors.upgrade_controller import UpgradeController
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, Kind, Ref

Reader = Callable[[Ref, str, Mapping[str, str]], bytes]
_SOON = timedelta(seconds=1)

KUBERNETES_CONTROLLERS: tuple[Callable[[ActorContext], Actor], ...] = (DeploymentController, JobController)
"""Those that the embedded API server does not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterVersion:
    """Tells of changes of the cluster. `now` is another value whenever anything has changed; `changes` says what has
    become of a kind's objects since such a value, as `ChangesOf`. By default nobody can say."""

    now: Callable[[], object] = object
    changes: Callable[[Kind, Any], Sequence[tuple[Body | None, Body | None]] | None] = lambda kind, since: None


def nobody(seconds: float) -> None:
    """Hears of outages where there is no API server to take away."""


class Simulation:
    """All other actors of one Harvester cluster. Not to be stepped from two threads."""

    def __init__(
        self, context: ActorContext, repo: Repo, hosts: Hosts, actors: tuple[Actor, ...], version: ClusterVersion
    ) -> None:
        self.log = context.log
        self.faults = context.faults
        self.repo = repo
        self.hosts = hosts
        self._context = context
        self._actors = actors
        self._version = version
        self._seen = version.now()
        self._rested: datetime | None = None
        self._again: datetime | None = None
        self._resting: dict[Actor, Mapping[KindName, object]] = {}

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        kinds: Kinds,
        settings: Settings,
        *,
        faults: FaultPlan | None = None,
        away: Callable[[float], None] = nobody,
        controllers: Sequence[Callable[[ActorContext], Actor]] = KUBERNETES_CONTROLLERS,
        pods: PodHandler | None = None,
        version: ClusterVersion | None = None,
    ) -> Simulation:
        """A simulation that begins now, with the cluster as it is.

        `controllers` are Kubernetes' own that the cluster does not run itself. `away` is called with the length of an
        outage in seconds and has to make the API server unreachable for others. With a `version` only what has
        changed is read.
        """
        log = SimulationLog()
        client = ActorClient(cluster, kinds)
        context = ActorContext(
            client=client,
            settings=settings,
            faults=FaultInjector(faults or FaultPlan()),
            log=log,
            outage=Outage(away, log),
        )
        repo, hosts, machines = Repo(context, ActorClient(cluster, kinds)), Hosts(context), Machines(context)
        kubevirt = KubeVirt(context, machines)
        effects = UpgradeJobEffects(context, hosts, machines, kubevirt).by_operation
        actors: tuple[Actor, ...] = (
            ImageImport(context),
            UpgradeController(context),
            *(controller(context) for controller in controllers),
            Kubelets(context, effects, pods or EmbeddedPods()),
            hosts,
            Rancher(context),
            machines,
            kubevirt,
            Longhorn(context),
            Addons(context),
            repo,
        )
        return cls(context, repo, hosts, actors, version or ClusterVersion())

    @property
    def readers(self) -> Mapping[tuple[str, str], Reader]:
        """The backends of an API server's proxies, by kind and subresource."""
        return {("Service", "proxy"): self.repo.answer, ("Node", "proxy"): self.hosts.answer}

    def step(self, now: datetime) -> bool:
        """Lets everybody act once; whether anything was done. While the API server is away nobody can."""
        if self._context.outage.is_on(now):
            self._again = self._context.outage.until
            return False
        if self._version.now() != self._seen:
            self._context.client.refresh(lambda kind: self._version.changes(kind, self._seen))
        elif self._rested is not None and not self._is_due(now):
            return False
        self._again = None
        worked = any([self._step(actor, now) for actor in self._actors])  # noqa: C419 everybody acts
        self._seen = self._version.now()
        self._rested = None if worked else now
        return worked

    def _is_due(self, now: datetime) -> bool:
        due = self.next_due()
        return due is not None and due <= now

    def reboot(self, node: str, os_image: str = "") -> None:
        """Lets a node reboot out of turn, as if somebody had pulled its plug; into another OS if one is named."""
        self.hosts.order_reboot(node, os_image)
        self._rested = None

    def next_due(self) -> datetime | None:
        """The time of the next action that needs no other change; None if never."""
        if self._again is not None:
            return self._again
        return min((due for actor in self._actors if (due := actor.next_due()) is not None), default=None)

    def _step(self, actor: Actor, now: datetime) -> bool:
        """Lets one actor act. It sees at its next step what changed meanwhile; a server that is unavailable comes
        back.

        One that had nothing to do rests until a kind that it has looked at changes, or time that it waits for has
        passed: it would find nothing to do again. Those that others call do not rest.
        """
        client = self._context.client
        if self._again is not None or self._rests(actor, now):
            return False
        self._resting.pop(actor, None)
        client.looks_from_now()
        try:
            worked = actor.step(now)
        except (Conflict, NotFound, AlreadyExists):
            client.refresh()
            return True
        except (Away, ServerFailed, Throttled):
            self._again = now + _SOON
            return False
        if not worked and actor not in (self.hosts, self.repo):
            self._resting[actor] = client.looked_at
        return worked

    def _rests(self, actor: Actor, now: datetime) -> bool:
        seen, due = self._resting.get(actor), actor.next_due()
        return seen is not None and (due is None or due > now) and self._context.client.is_as_seen(seen)
