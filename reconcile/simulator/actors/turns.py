"""The upgrade of one machine by Rancher, and what the Cluster and the Machine say about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from reconcile.simulator.actors.actor_context import is_deleted, labels_of
from renderer.model.ref import Body


class At(Enum):
    """The progress of a machine's turn."""

    PICKED = "picked"
    ASKED_BEFORE = "asked before the drain"
    DRAINING = "draining"
    UPGRADING = "upgrading"
    UPGRADED = "upgraded"
    ASKED_AFTER = "asked after the upgrade"


@dataclass(slots=True, kw_only=True)
class Turn:
    """One machine's turn. `asked` counts the values that were written, so that none comes twice. `leaving` are the UIDs
    of the pods that were there when the drain began: as `kubectl drain` does, it evicts no others."""

    machine: str
    node: str
    at: At = At.PICKED
    value: str = ""
    asked: int = 0
    answered: int = 0
    drained: bool = False
    leaving: frozenset[str] | None = None


def target_of(cluster: Body) -> tuple[Any, Any]:
    spec = cluster["spec"]
    return spec.get("kubernetesVersion"), (spec.get("rkeConfig") or {}).get("provisionGeneration")


def drain_options(cluster: Body, machine: Body) -> Mapping[str, Any]:
    strategy = (cluster["spec"].get("rkeConfig") or {}).get("upgradeStrategy") or {}
    return strategy.get("workerDrainOptions" if rank_of(machine) == 2 else "controlPlaneDrainOptions") or {}


def rank_of(machine: Body) -> int:
    labels = labels_of(machine)
    if "rke.cattle.io/init-node" in labels:
        return 0
    servers = ("rke.cattle.io/control-plane-role", "rke.cattle.io/etcd-role")
    return 1 if any(role in labels for role in servers) else 2


def is_evicted(pod: Body, node: str) -> bool:
    """A drain leaves DaemonSets' pods, and finished Jobs' do not matter."""
    owners = {owner["kind"] for owner in pod["metadata"].get("ownerReferences") or ()}
    return pod["spec"].get("nodeName") == node and "ReplicaSet" in owners and not is_deleted(pod)
