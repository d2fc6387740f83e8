"""All actors together: one step, one next moment, one ledger. Whoever drives the world says what time it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from reconcile.actors.addons import Addons
from reconcile.actors.deployments import DeploymentController
from reconcile.actors.hosts import Hosts
from reconcile.actors.image_import import ImageImport
from reconcile.actors.jobs import JobController
from reconcile.actors.kubevirt import KubeVirt
from reconcile.actors.ledger import Ledger
from reconcile.actors.longhorn import Longhorn
from reconcile.actors.machines import Machines
from reconcile.actors.pods import Pods
from reconcile.actors.rancher import Rancher
from reconcile.actors.repo import Repo
from reconcile.actors.scene import Actor, Outage, Scene
from reconcile.actors.script import Script
from reconcile.actors.settings import Settings
from reconcile.actors.stage import EndPod, Stage
from reconcile.actors.upgrade_controller import UpgradeController
from reconcile.actors.works import UpgradeWorks
from reconcile.cluster.errors import AlreadyExists, Away, Conflict, NotFound, ServerFailed, Throttled
from reconcile.cluster.protocol import Cluster
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Ref

Reader = Callable[[Ref, str, Mapping[str, str]], bytes]
_SOON = timedelta(seconds=1)


def unknown() -> object:
    """Nobody can say whether the cluster has changed: each answer is another one."""
    return object()


def nobody(seconds: float) -> None:
    """Is told of outages where there is no API server to take away."""


class World:
    """Harvester's world on one cluster. Not to be stepped from two threads."""

    def __init__(
        self, scene: Scene, repo: Repo, hosts: Hosts, actors: tuple[Actor, ...], version: Callable[[], object]
    ) -> None:
        self.ledger = scene.ledger
        self.repo = repo
        self.hosts = hosts
        self._scene = scene
        self._actors = actors
        self._version = version
        self._seen = version()
        self._rested: datetime | None = None
        self._again: datetime | None = None

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        kinds: Kinds,
        settings: Settings,
        *,
        script: Script | None = None,
        away: Callable[[float], None] = nobody,
        end_pod: EndPod | None = None,
        real: bool = False,
        version: Callable[[], object] = unknown,
    ) -> World:
        """A world that begins now, with the cluster as it is.

        `real`: Kubernetes' own controllers are at work, so only what they wait for is played. `away` is called with the
        seconds of an outage and has to make the API server unreachable for others; `end_pod` deletes a pod with grace
        period 0, without which deleted pods stay on a real server. `version` answers another value whenever the cluster
        has changed; with it nothing is read while nothing happens. Only for a cluster that nobody writes to meanwhile.
        """
        ledger = Ledger()
        stage = Stage(cluster, kinds, end_pod=end_pod, real=real)
        scene = Scene(
            stage=stage, settings=settings, script=script or Script(), ledger=ledger, outage=Outage(away, ledger)
        )
        repo, hosts, machines = Repo(scene, Stage(cluster, kinds)), Hosts(scene), Machines(scene)
        kubevirt = KubeVirt(scene, machines)
        pods = Pods(scene, UpgradeWorks(scene, hosts, machines, kubevirt).by_act)
        controllers: tuple[Actor, ...] = () if real else (DeploymentController(scene), JobController(scene))
        actors: tuple[Actor, ...] = (ImageImport(scene), UpgradeController(scene), *controllers, pods, hosts)
        others: tuple[Actor, ...] = (Rancher(scene), machines, kubevirt, Longhorn(scene), Addons(scene), repo)
        return cls(scene, repo, hosts, actors + others, version)

    @property
    def readers(self) -> Mapping[tuple[str, str], Reader]:
        """What stands behind an API server's proxies, by kind and subresource."""
        return {("Service", "proxy"): self.repo.answer, ("Node", "proxy"): self.hosts.answer}

    def step(self, now: datetime) -> bool:
        """Lets everybody act once; whether anything was done. While the API server is away nobody can."""
        if self._scene.outage.is_on(now):
            self._again = self._scene.outage.until
            return False
        if self._version() != self._seen:
            self._scene.stage.refresh()
        elif self._rested is not None and not self._is_due(now):
            return False
        self._again = None
        worked = any([self._step(actor, now) for actor in self._actors])  # noqa: C419 everybody acts
        self._seen = self._version()
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
        """When there will be something to do even if nobody else does anything; None if never."""
        if self._again is not None:
            return self._again
        return min((due for actor in self._actors if (due := actor.next_due()) is not None), default=None)

    def _step(self, actor: Actor, now: datetime) -> bool:
        """What changed under an actor's hands it sees at its next step; a server that is away comes back."""
        if self._again is not None:
            return False
        try:
            return actor.step(now)
        except (Conflict, NotFound, AlreadyExists):
            self._scene.stage.refresh()
            return True
        except (Away, ServerFailed, Throttled):
            self._again = now + _SOON
            return False
