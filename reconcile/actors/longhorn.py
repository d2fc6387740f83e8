"""Longhorn: volumes are degraded while a node is away and rebuilt when it is back; settings are taken up."""

from __future__ import annotations

from datetime import datetime

from reconcile.actors.ledger import What
from reconcile.actors.placement import is_ready, is_witness
from reconcile.actors.scene import Scene, status_of
from reconcile.actors.stage import LONGHORN_SETTING, NODE, REPLICA, VOLUME
from reconcile.actors.timers import Timers
from renderer.model.ref import Body

ACT = "volume-rebuild"
NAMESPACE = "longhorn-system"


class Longhorn:
    """Works on attached volumes with more than one replica."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._stage = scene.stage.by("longhorn-manager")
        self._timers = Timers()

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        nodes = [node for node in self._stage.all(NODE) if not is_witness(node)]
        away = {str(node["metadata"]["name"]) for node in nodes if not is_ready(node)}
        for volume in self._stage.all(VOLUME, NAMESPACE):
            if status_of(volume).get("state") == "attached" and int(volume["spec"].get("numberOfReplicas") or 1) > 1:
                self._look_after(volume, away, now)
        for setting in self._stage.all(LONGHORN_SETTING, NAMESPACE):
            self._stage.tell(setting, {"applied": True})
        return self._stage.worked()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    def _look_after(self, volume: Body, away: set[str], now: datetime) -> None:
        name, robustness = str(volume["metadata"]["name"]), status_of(volume).get("robustness")
        if self._misses(volume, away):
            self._timers.forget(name)
            if robustness == "healthy":
                self._stage.tell(volume, {"robustness": "degraded"})
                self._scene.ledger.add(now, What.VOLUME_DEGRADED, name)
        elif robustness == "degraded" and self._timers.passed(
            name, self._scene.script.lasts(ACT, self._scene.settings.rebuild, name)
        ):
            self._timers.forget(name)
            self._stage.tell(volume, {"robustness": "healthy"})
            self._scene.ledger.add(now, What.VOLUME_REBUILT, name)

    def _misses(self, volume: Body, away: set[str]) -> bool:
        """Whether a replica stands on a node that is away; where replicas are not known, they are everywhere."""
        name = volume["metadata"]["name"]
        replicas = [each for each in self._stage.all(REPLICA, NAMESPACE) if each["spec"].get("volumeName") == name]
        return bool(away) if not replicas else any(each["spec"].get("nodeID") in away for each in replicas)
