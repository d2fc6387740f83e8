"""Runs the collector of logs while there is something to collect: one replica of its Deployment, otherwise none.

It gates nothing. A collector that cannot run, or cannot be scaled, is logged, and upgrades go on.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock

from reconcile.cluster.errors import ClusterError, text_of
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.decide.plan import is_over
from reconcile.loop.logs import Log
from reconcile.loop.round import Round
from reconcile.pod_logs.plan_pods import is_collected
from reconcile.status.plan_body import outline_of
from renderer.model.plan_api import PLAN_KIND
from renderer.model.ref import Body, Kind, Ref

EVERY = 10.0
"""Seconds between two looks at whether the collector is needed."""

DEPLOYMENT = Kind(api_version="apps/v1", kind="Deployment", plural="deployments", namespaced=True)


class CollectorScale:
    """`on_round` says which plans are under way; those that are there when this manager begins to lead are listed once.
    `deployment` is the collector's."""

    def __init__(self, cluster: Cluster, deployment: Ref, log: Log, *, every_plan: bool) -> None:
        self._cluster, self._deployment = cluster, deployment
        self._log, self._every_plan = log, every_plan
        self._under_way: dict[str, bool] = {}
        self._replicas: int | None = None
        self._said = ""
        self._lock, self._stopped = Lock(), Event()

    def on_round(self, done: Round) -> None:
        with self._lock:
            if done.plan is not None:
                self._under_way[done.name] = not done.over and self._collects(done.plan)
            elif done.over:
                self._under_way.pop(done.name, None)

    def run(self, must_lead: Callable[[], None]) -> None:
        """`must_lead` raises where another manager leads."""
        while not self._stopped.wait(EVERY):
            self.look(must_lead)

    def stop(self) -> None:
        self._stopped.set()

    def look(self, must_lead: Callable[[], None] = lambda: None) -> None:
        """Scales if it is needed; what fails is logged once, and tried again at the next look."""
        try:
            must_lead()
        except ClusterError:
            self._stand_by()
            return
        try:
            self._scale(self._cluster.guarded(must_lead))
            self._said = ""
        except ClusterError as error:
            if self._said != error.problem.message:
                self._said = error.problem.message
                self._log("log collector not scaled", {"object": str(self._deployment), "why": text_of(error.problem)})

    def _stand_by(self) -> None:
        """Another one may scale it meanwhile, and knows of plans."""
        with self._lock:
            self._under_way.clear()
        self._replicas = None

    def _scale(self, cluster: Cluster) -> None:
        if self._replicas is None:
            listed = {str(plan["metadata"]["name"]): plan for plan in cluster.list(Selection(kind=PLAN_KIND)).items}
            with self._lock:  # what a round has seen meanwhile is newer
                self._under_way = {name: self._is_under_way(plan) for name, plan in listed.items()} | self._under_way
        with self._lock:
            wanted = int(any(self._under_way.values()))
        if wanted != self._replicas:
            cluster.patch(DEPLOYMENT, self._deployment, {"spec": {"replicas": wanted}})
            self._replicas = wanted
            self._log("log collector", {"object": str(self._deployment), "replicas": wanted})

    def _is_under_way(self, plan: Body) -> bool:
        return self._collects(plan) and not is_over(outline_of(plan))

    def _collects(self, plan: Body) -> bool:
        return is_collected(plan, unless_annotated=self._every_plan)
