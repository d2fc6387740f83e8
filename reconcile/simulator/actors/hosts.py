"""The nodes: a reboot that was ordered, the time that a node is down, and the OS that comes up.

The Ready condition and the taints of a node that is unreachable or cordoned are as the Kubernetes documentation
describes them. A reboot and the new OS are modelled, not compared with a real node.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from reconcile.cluster.errors import BackendFailed
from reconcile.simulator.actors.actor_client import NODE
from reconcile.simulator.actors.actor_context import (
    ActorContext,
    Timers,
    conditions,
    has_condition,
    labels_of,
    status_of,
)
from reconcile.simulator.actors.placement import ABSENT_TAINT, CORDON_TAINT, is_tainted, with_taint, without_taint
from reconcile.simulator.actors.simulation_log import SimulationEventType
from reconcile.status.times import time_text
from renderer.model.ref import Body, Ref

ACT = "reboot"
_SERVERS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/etcd")
_GIB = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Reboot:
    """`number` counts a node's reboots, from 1."""

    number: int
    os_image: str
    is_down: bool = False


class Hosts:
    """Kubelets and what is below them. A node that stalls in its reboot never comes back; one that fails comes up with
    the OS that it had. `reports` is what hosts would say who looks at them; of others all is well."""

    def __init__(self, context: ActorContext) -> None:
        self._context = context
        self._client = context.client.as_manager("kubelet")
        self._timers = Timers()
        self._reboots: dict[str, Reboot] = {}
        self._ordered: Counter[str] = Counter()
        self.reports: dict[str, Mapping[str, Any]] = dict(context.settings.hosts)

    def step(self, now: datetime) -> bool:
        self._timers.begin(now)
        for name, reboot in sorted(self._reboots.items(), key=lambda item: item[0]):
            node = self._client.find(NODE, name)
            if node is not None:
                self._reboot(node, reboot, now)
        for node in self._client.those(NODE, _lacks_taint):
            self._note_cordon(node, now)
        return self._client.take_changed()

    def next_due(self) -> datetime | None:
        return self._timers.next_due()

    def order_reboot(self, node: str, os_image: str) -> None:
        """The node reboots in a moment, into this OS or, if empty, its own; its kubelet is up until then."""
        self._ordered[node] += 1
        self._reboots[node] = Reboot(number=self._ordered[node], os_image=os_image)

    def answer(self, ref: Ref, path: str, query: Mapping[str, str]) -> bytes:
        """The answer of the kubelet behind the node's proxy."""
        known = self._context.settings.kubelets.get(ref.name) or {}
        if path == "stats/summary":
            disk = known.get("fs") or {
                "capacityBytes": 200 * _GIB,
                "usedBytes": 60 * _GIB,
                "availableBytes": 140 * _GIB,
            }
            return json.dumps({"node": {"nodeName": ref.name, "fs": disk}}).encode()
        if path == "configz":
            threshold = known.get("imageGCHighThresholdPercent", 85)
            return json.dumps({"kubeletconfig": {"imageGCHighThresholdPercent": threshold}}).encode()
        raise BackendFailed(ref, path, 404, "404 page not found")

    def report(self, name: str, now: datetime) -> Mapping[str, Any]:
        """Returns what a look at the host of a node finds, in the form of `facts.hosts`."""
        return self.reports.get(name) or _good_host(now)

    def _reboot(self, node: Body, reboot: Reboot, now: datetime) -> None:
        name = str(node["metadata"]["name"])
        if not reboot.is_down:
            if self._timers.passed((name, reboot.number, "watch"), self._context.settings.reboot_watch):
                self._go_down(node, reboot, now)
            return
        lasts = self._context.faults.lasts(ACT, self._context.settings.reboot, name)
        if self._timers.passed((name, reboot.number, "boot"), lasts):
            self._come_back(node, reboot, now)

    def _go_down(self, node: Body, reboot: Reboot, now: datetime) -> None:
        name = str(node["metadata"]["name"])
        away = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        self._client.patch_status(
            node, {"conditions": conditions(node, now, {**away, "message": "Kubelet stopped posting node status."})}
        )
        self._taint(node, present=True)
        self._reboots[name] = Reboot(number=reboot.number, os_image=reboot.os_image, is_down=True)
        self._context.log.add(now, SimulationEventType.WENT_DOWN, name, name)
        lasts = self._context.faults.lasts(ACT, self._context.settings.reboot, name)
        self._timers.passed((name, reboot.number, "boot"), lasts)
        if self._serves_alone(node) and lasts is not None:
            self._context.outage.begin(now, lasts, f"{name} reboots")

    def _come_back(self, node: Body, reboot: Reboot, now: datetime) -> None:
        name = str(node["metadata"]["name"])
        info = status_of(node).get("nodeInfo") or {}
        failed = self._context.faults.fails(ACT, name, reboot.number - 1)
        os_image = info.get("osImage", "") if failed or not reboot.os_image else reboot.os_image
        boot_id = str(uuid.uuid5(uuid.NAMESPACE_OID, f"{node['metadata']['uid']} {reboot.number}"))
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
        reported = {"nodeInfo": {"bootID": boot_id, "osImage": os_image}, "conditions": conditions(node, now, ready)}
        self._client.patch_status(node, reported)
        self._taint(node, present=False)
        del self._reboots[name]
        self._context.log.add(now, SimulationEventType.CAME_BACK, name, name, str(os_image))

    def _taint(self, node: Body, *, present: bool) -> None:
        """The node lifecycle controller's part; a cordon is left as it is."""
        if present != is_tainted(node, ABSENT_TAINT):
            taints: list[Any] = with_taint(node, ABSENT_TAINT) if present else without_taint(node, ABSENT_TAINT)
            self._client.patch(node, {"spec": {"taints": taints or None}})

    def _note_cordon(self, node: Body, now: datetime) -> None:
        """The same controller's part. Who is cordoned after a reboot was so before, or somebody else did it."""
        name = str(node["metadata"]["name"])
        self._client.patch(node, {"spec": {"taints": with_taint(node, CORDON_TAINT)}})
        if self._ordered[name]:
            self._context.log.add(now, SimulationEventType.CORDONED_AGAIN, name, name)

    def _serves_alone(self, node: Body) -> bool:
        """True if no API server is left without this node."""
        others = [each for each in self._client.all(NODE) if each["metadata"]["name"] != node["metadata"]["name"]]
        return not any(_is_server(each) and has_condition(each, "Ready") for each in others)


def _lacks_taint(node: Body) -> bool:
    return bool(node["spec"].get("unschedulable")) and not is_tainted(node, CORDON_TAINT)


def _is_server(node: Body) -> bool:
    return any(role in labels_of(node) for role in _SERVERS)


def _good_host(now: datetime) -> Mapping[str, Any]:
    return {
        "cosState": {"kilobytes": 15_996_924},
        "usrLocal": {"freeKilobytes": 94_371_840},
        "oem": {"customFile": "complete", "managementInterface": True, "installNetworks": False},
        "certificate": {"file": "server/tls/client-admin.crt", "notAfter": time_text(now + timedelta(days=365))},
        "clock": {"synchronized": True},
        "firmware": "uefi",
        "nics": {"unpinned": []},
        "toolkitImage": True,
    }
