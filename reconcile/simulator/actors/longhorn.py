"""Longhorn: volumes are degraded while a node is down and rebuilt when it is back; settings are applied.

Modelled on the fields of Longhorn's API, `v1beta2`; not compared with a running Longhorn. A volume is rebuilt where
its replica was: none is moved to another node.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from reconcile.simulator.actors.actor_client import LONGHORN_SETTING, NODE, REPLICA, VOLUME
from reconcile.simulator.actors.actor_context import ActorContext, Timers, status_of
from reconcile.simulator.actors.placement import is_ready
from reconcile.simulator.actors.simulation_log import SimulationEventType
from renderer.model.node_labels import is_witness
from renderer.model.ref import Body

ACT = "volume-rebuild"
NAMESPACE = "longhorn-system"


class Longhorn:
    """Works on attached volumes with more than one replica."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client.as_manager("longhorn-manager")
        self._timers = Timers()

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        away = {str(node["metadata"]["name"]) for node in self._client.those(NODE, _is_away)}
        replicas = self._replicas()
        for volume in self._client.all(VOLUME, NAMESPACE):
            if status_of(volume).get("state") == "attached" and int(volume["spec"].get("numberOfReplicas") or 1) > 1:
                hosts = replicas.get(str(volume["metadata"]["name"]), away)  # not known where: everywhere
                self._look_after(volume, bool(hosts & away), now)
        for setting in self._client.all(LONGHORN_SETTING, NAMESPACE):
            self._client.patch_status(setting, {"applied": True})
        return self._client.take_changed()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    def _look_after(self, volume: Body, misses: bool, now: datetime) -> None:
        name, robustness = str(volume["metadata"]["name"]), status_of(volume).get("robustness")
        if misses:
            self._timers.forget(name)
            if robustness == "healthy":
                self._client.patch_status(volume, {"robustness": "degraded"})
                self._context.log.add(now, SimulationEventType.VOLUME_DEGRADED, name)
        elif robustness == "degraded" and self._timers.passed(
            name, self._context.faults.lasts(ACT, self._context.settings.rebuild, name)
        ):
            self._timers.forget(name)
            self._client.patch_status(volume, {"robustness": "healthy"})
            self._context.log.add(now, SimulationEventType.VOLUME_REBUILT, name)

    def _replicas(self) -> Mapping[str, set[str]]:
        """The nodes with a replica, by volume."""
        found: dict[str, set[str]] = {}
        for replica in self._client.all(REPLICA, NAMESPACE):
            found.setdefault(str(replica["spec"].get("volumeName")), set()).add(str(replica["spec"].get("nodeID")))
        return found


def _is_away(node: Body) -> bool:
    """True of a node that may have replicas, and whose replicas nobody reaches."""
    return not is_witness(node) and not is_ready(node)
