"""The log of a simulation, in order: for the report of a rehearsal and for tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from threading import Lock


class SimulationEventType(StrEnum):
    """The subject is a virtual machine or add-on (`namespace/name`), a Job's operation, an object's name or a node."""

    IMAGE_IMPORTED = "ImageImported"
    IMAGE_FAILED = "ImageFailed"
    WORK_STARTED = "WorkStarted"
    WORK_SUCCEEDED = "WorkSucceeded"
    WORK_FAILED = "WorkFailed"
    VM_MOVED = "VMMoved"
    VM_STOPPED = "VMStopped"
    VM_STARTED = "VMStarted"
    MIGRATION_STORM = "MigrationStorm"
    KUBEVIRT_UPGRADED = "KubeVirtUpgraded"
    HARVESTER_UPGRADED = "HarvesterUpgraded"
    PRE_DRAIN_ASKED = "PreDrainAsked"
    PRE_DRAIN_ANSWERED = "PreDrainAnswered"
    CORDONED = "Cordoned"
    DRAINED = "Drained"
    KUBERNETES_UPGRADED = "KubernetesUpgraded"
    POST_DRAIN_ASKED = "PostDrainAsked"
    POST_DRAIN_ANSWERED = "PostDrainAnswered"
    UNCORDONED = "Uncordoned"
    CORDONED_AGAIN = "CordonedAgain"
    WENT_DOWN = "WentDown"
    CAME_BACK = "CameBack"
    VOLUME_DEGRADED = "VolumeDegraded"
    VOLUME_REBUILT = "VolumeRebuilt"
    ADDON_ENABLED = "AddonEnabled"
    ADDON_DISABLED = "AddonDisabled"
    WENT_AWAY = "WentAway"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationEvent:
    """`to` is where a virtual machine went; `detail` depends on what happened: a Job's name and uid, the OS that came
    up, the version, the value that Rancher asked with."""

    time: datetime
    what: SimulationEventType
    subject: str
    node: str = ""
    to: str = ""
    detail: str = ""

    def __str__(self) -> str:
        place = f" on {self.node}" if self.node and self.node != self.subject else ""
        place += f" to {self.to}" if self.to else ""
        return f"{self.what} {self.subject}{place}" + (f": {self.detail}" if self.detail else "")


class SimulationLog:
    """Events in the order in which they were added, from any thread."""

    def __init__(self) -> None:
        self._events: list[SimulationEvent] = []
        self._lock = Lock()

    def add(
        self, time: datetime, what: SimulationEventType, subject: str, node: str = "", detail: str = "", to: str = ""
    ) -> None:
        with self._lock:
            self._events.append(SimulationEvent(time=time, what=what, subject=subject, node=node, to=to, detail=detail))

    @property
    def events(self) -> tuple[SimulationEvent, ...]:
        with self._lock:
            return tuple(self._events)

    def of(self, *whats: SimulationEventType, node: str = "") -> tuple[SimulationEvent, ...]:
        return tuple(event for event in self.events if event.what in whats and node in ("", event.node))
