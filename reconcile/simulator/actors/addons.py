"""Harvester's add-on controller: what is switched on is deployed after a while, what is switched off is gone."""

from __future__ import annotations

from datetime import datetime

from reconcile.simulator.actors.actor_client import ADDON
from reconcile.simulator.actors.actor_context import ActorContext, status_of
from reconcile.simulator.actors.timers import Timers
from renderer.model.ref import Body

ACT = "addon"
_SETTLED = {True: ("AddonDeploySuccessful",), False: ("AddonDisabled", "")}
_UNDER_WAY = {True: "AddonEnabling", False: "AddonDisabling"}


class Addons:
    """Follows spec.enabled of every add-on."""

    def __init__(self, context: ActorContext) -> None:
        self._scene = context
        self._stage = context.client.by("harvester")
        self._timers = Timers()

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        for addon in self._stage.all(ADDON):
            self._follow(addon)
        return self._stage.worked()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    def _follow(self, addon: Body) -> None:
        wanted, said = addon["spec"].get("enabled") is True, str(status_of(addon).get("status") or "")
        key = (addon["metadata"]["uid"], wanted)
        if said in _SETTLED[wanted]:
            self._timers.forget(key)
            return
        lasts = self._scene.faults.lasts(ACT, self._scene.settings.addon, str(addon["metadata"]["name"]))
        passed = self._timers.passed(key, lasts)
        self._stage.tell(addon, {"status": _SETTLED[wanted][0] if passed else _UNDER_WAY[wanted]})
