"""Harvester's own controllers: the import of an image, and add-ons.

The import was compared with github.com/harvester/harvester, pkg/controller/master/image, pkg/image/cdi and
pkg/image/common, for images of the backend `cdi`: what fails is the look at the address, which is tried again after ten
seconds; of an import that CDI has begun Harvester never says that it has failed. Add-ons are modelled on the API types
alone. Not compared with a running Harvester. A claim that is deleted while a pod uses it stays, as Kubernetes documents
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from reconcile.simulator.actors.actor_client import ADDON, CLAIM, IMAGE, POD
from reconcile.simulator.actors.actor_context import (
    ActorContext,
    Timers,
    conditions,
    has_condition,
    is_deleted,
    name_of,
    owner_reference,
    status_of,
)
from reconcile.simulator.actors.simulation_log import SimulationEventType
from reconcile.status.times import time_text
from renderer.model.ref import Body

IMPORT_OPERATION = "image-import"
_PARTS = 4
_RETRY_AFTER = timedelta(seconds=10)
_ERROR = "failed to fetch image virtual size: content length is less than 128 bytes"
"""The error for a page that says that there is no such file."""


class ImageImport:
    """Works on every image that is neither imported nor given up."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client.as_manager("harvester")
        self._timers = Timers()

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        for image in self._client.all(IMAGE):
            if not is_deleted(image):
                self._work_on(image, now)
        self._let_claims_go()
        return self._client.take_changed()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    def _work_on(self, image: Body, now: datetime) -> None:
        if has_condition(image, "Imported"):
            self._hold(image)
        elif has_condition(image, "RetryLimitExceeded") or has_condition(image, "Imported", "False"):
            return
        elif not has_condition(image, "Initialized"):
            self._look_at_address(image, now)
        else:
            self._go_on(image, now)

    def _look_at_address(self, image: Body, now: datetime) -> None:
        name, failed = str(image["metadata"]["name"]), int(status_of(image).get("failed") or 0)
        if failed and not self._timers.passed((image["metadata"]["uid"], "retry", failed), _RETRY_AFTER):
            return
        if self._context.faults.fails(IMPORT_OPERATION, name, failed):
            self._fail(image, failed + 1, now)
            return
        begun = _reported(
            image,
            now,
            {"type": "Initialized", "status": "True", "reason": "Initialized", "message": ""},
            {"type": "Imported", "status": "Unknown", "reason": "Importing"},
        )
        self._client.patch_status(image, {"conditions": begun, "progress": 0})

    def _go_on(self, image: Body, now: datetime) -> None:
        """A quarter of the import after the other."""
        lasts = self._context.faults.lasts(
            IMPORT_OPERATION, self._context.settings.image_import, str(image["metadata"]["name"])
        )
        done = 0
        for part in range(1, _PARTS + 1):
            key = (image["metadata"]["uid"], part)
            if self._timers.passed(key, None if lasts is None else lasts * part / _PARTS):
                done = part
        if done < _PARTS:
            self._client.patch_status(image, {"progress": done * 100 // _PARTS})
        else:
            self._succeed(image, now)

    def _succeed(self, image: Body, now: datetime) -> None:
        imported = _reported(
            image,
            now,
            {"type": "Imported", "status": "True", "reason": "Imported", "message": ""},
            {"type": "RetryLimitExceeded", "status": "False", "reason": "", "message": ""},
        )
        self._client.patch_status(image, {"conditions": imported, "progress": 100, "size": 6 << 30})
        self._context.log.add(now, SimulationEventType.IMAGE_IMPORTED, str(image["metadata"]["name"]))
        self._hold(image)

    def _fail(self, image: Body, failed: int, now: datetime) -> None:
        retries = int(image["spec"].get("retry") or 0)
        tried = f"retry attempted {failed - 1}/{retries} " if failed > 1 else ""
        why, over = f"{tried}failed due to error: {_ERROR}", failed > retries
        exceeded = {"type": "RetryLimitExceeded", "status": "True" if over else "False", "message": why}
        ended = [{"type": "Initialized", "status": "False", "message": why}] if over else []
        reported = _reported(image, now, exceeded, *ended)
        self._client.patch_status(
            image, {"conditions": reported, "failed": failed, "progress": 0, "lastFailedTime": time_text(now)}
        )
        if over:
            self._context.log.add(now, SimulationEventType.IMAGE_FAILED, str(image["metadata"]["name"]), detail=why)

    def _hold(self, image: Body) -> None:
        """The claim is the image's, and goes with it."""
        metadata = image["metadata"]
        claim = self._client.find(CLAIM, metadata["name"], metadata["namespace"])
        if claim is None:
            claim = self._client.create(_claim(image))
        if status_of(claim).get("phase") != "Bound":
            self._client.patch_status(claim, {"phase": "Bound", "capacity": {"storage": "10Gi"}})

    def _let_claims_go(self) -> None:
        """Kubernetes keeps a claim that is being deleted for as long as a pod uses it."""
        leaving = [claim for claim in self._client.all(CLAIM) if is_deleted(claim)]
        pods = [pod for pod in self._client.all(POD) if not is_deleted(pod)] if leaving else []
        for claim in leaving:
            if not any(_uses(pod, claim) for pod in pods):
                self._client.patch(claim, {"metadata": {"finalizers": None}})
                self._client.refresh()


def _reported(image: Body, now: datetime, *expected: Mapping[str, str]) -> list[Any]:
    return conditions(image, now, *expected, time="lastUpdateTime")


def _claim(image: Body) -> Body:
    metadata = image["metadata"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "ownerReferences": [owner_reference(image)],
        },
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "resources": {"requests": {"storage": "10Gi"}},
            "storageClassName": str(image["spec"].get("targetStorageClassName") or "longhorn-static"),
        },
    }


def _uses(pod: Body, claim: Body) -> bool:
    if pod["metadata"]["namespace"] != claim["metadata"]["namespace"]:
        return False
    sources = (volume.get("persistentVolumeClaim") or {} for volume in pod["spec"].get("volumes") or ())
    return claim["metadata"]["name"] in (source.get("claimName") for source in sources)


ADDON_OPERATION = "addon"
_SETTLED = {True: ("AddonDeploySuccessful",), False: ("AddonDisabled", "")}
_UNDER_WAY = {True: "AddonEnabling", False: "AddonDisabling"}
_EVENTS = {True: SimulationEventType.ADDON_ENABLED, False: SimulationEventType.ADDON_DISABLED}


class Addons:
    """Follows spec.enabled of every add-on."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client.as_manager("harvester")
        self._timers = Timers()

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        for addon in self._client.all(ADDON):
            self._follow(addon, now)
        return self._client.take_changed()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    def _follow(self, addon: Body, now: datetime) -> None:
        enabled, status = addon["spec"].get("enabled") is True, str(status_of(addon).get("status") or "")
        key = (addon["metadata"]["uid"], enabled)
        if status in _SETTLED[enabled]:
            self._timers.forget(key)
            return
        lasts = self._context.faults.lasts(ADDON_OPERATION, self._context.settings.addon)
        if not self._timers.passed(key, lasts):
            self._client.patch_status(addon, {"status": _UNDER_WAY[enabled]})
            return
        self._client.patch_status(addon, {"status": _SETTLED[enabled][0]})
        self._context.log.add(now, _EVENTS[enabled], name_of(addon))
