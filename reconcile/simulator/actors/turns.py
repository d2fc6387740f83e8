"""The upgrade of one machine by Rancher, and what the Cluster and the Machine say about it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from reconcile.objects import selects
from reconcile.simulator.actors.actor_context import is_deleted, labels_of, status_of
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
    """One machine's turn. `value` is what Rancher asks with, `hooks` are the annotations that it waits for; `answered`
    counts the answers to what it asks now. `leaving` are the UIDs of the pods that were there when the drain began: as
    `kubectl drain` does, it evicts no others."""

    machine: str
    node: str
    tier: str
    at: At = At.PICKED
    value: str = ""
    hooks: tuple[str, ...] = ()
    answered: int = 0
    drained: bool = False
    leaving: frozenset[str] | None = None


def target_of(cluster: Body) -> tuple[Any, Any]:
    spec = cluster["spec"]
    return spec.get("kubernetesVersion"), (spec.get("rkeConfig") or {}).get("provisionGeneration")


def drain_options(cluster: Body, machine: Body) -> Mapping[str, Any]:
    strategy = (cluster["spec"].get("rkeConfig") or {}).get("upgradeStrategy") or {}
    return strategy.get("workerDrainOptions" if tier_of(machine) == WORKER else "controlPlaneDrainOptions") or {}


def asking_value(options: Mapping[str, Any], repeated: int) -> str:
    """All drain options, sorted by name: the same for every machine, before and after its drain. Rancher asks with
    another value when somebody changes the options meanwhile; here it is another timeout."""
    options = {**options, "timeout": int(options.get("timeout") or 0) + repeated} if repeated else options
    return json.dumps({**_UNSET, **options}, sort_keys=True, separators=(",", ":"))


_UNSET: Mapping[str, Any] = {
    **dict.fromkeys(("deleteEmptyDirData", "disableEviction", "enabled", "force", "ignoreErrors"), False),
    **dict.fromkeys(("gracePeriod", "skipWaitForDeleteTimeoutSeconds", "timeout"), 0),
    **dict.fromkeys(("ignoreDaemonSets", "postDrainHooks", "preDrainHooks")),
}
"""The drain options of rke.cattle.io as they are written if nobody has set them."""


def hooks_of(options: Mapping[str, Any], *keys: str) -> tuple[str, ...]:
    return tuple(hook["annotation"] for key in keys for hook in options.get(key) or () if hook.get("annotation"))


WORKER = "worker"
_TIERS = ("bootstrap", "etcd", "control plane", WORKER)
"""One after the other. The first has the server that the others have joined."""


def tier_of(machine: Body) -> str:
    labels = labels_of(machine)
    if labels.get("rke.cattle.io/init-node") == "true":
        return "bootstrap"
    if labels.get("rke.cattle.io/etcd-role") == "true":
        return "etcd"
    return "control plane" if labels.get("rke.cattle.io/control-plane-role") == "true" else WORKER


def rank_of(machine: Body) -> int:
    return _TIERS.index(tier_of(machine))


def told_of(turns: Sequence[Turn], waiting: Sequence[Body]) -> str:
    """Says what the Cluster does: with the first machine that has its turn, else with those whose turn will come."""
    if turns:
        verb, why = _TOLD[turns[0].at]
        return f"{verb} {turns[0].tier} node(s) {turns[0].machine}: {why}"
    tier = tier_of(waiting[0]) if waiting else WORKER
    names = sorted(str(machine["metadata"]["name"]) for machine in waiting if tier_of(machine) == tier)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"configuring {tier} node(s) {','.join(names[:3])}{more}"


_TOLD: Mapping[At, tuple[str, str]] = {
    At.PICKED: ("configuring", "waiting for plan to be applied"),
    At.ASKED_BEFORE: ("draining", "draining node"),
    At.DRAINING: ("draining", "draining node"),
    At.UPGRADING: ("configuring", "waiting for plan to be applied"),
    At.UPGRADED: ("uncordoning", "waiting for uncordon to finish"),
    At.ASKED_AFTER: ("uncordoning", "waiting for uncordon to finish"),
}


def is_evicted(pod: Body, node: str) -> bool:
    """All but pods of DaemonSets, static ones, those that have ended, and those of virtual machines, which are migrated
    instead."""
    metadata = pod["metadata"]
    owners = {owner["kind"] for owner in metadata.get("ownerReferences") or ()}
    return (
        pod["spec"].get("nodeName") == node
        and not owners & {"DaemonSet", "VirtualMachineInstance"}
        and _MIRROR not in (metadata.get("annotations") or {})
        and status_of(pod).get("phase") not in ("Succeeded", "Failed")
        and not is_deleted(pod)
    )


_MIRROR = "kubernetes.io/config.mirror"


def is_protected(pod: Body, budgets: Iterable[Body]) -> bool:
    """True if one of these disruption budgets keeps the pod from being evicted."""
    return any(
        budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
        and selects(budget["spec"].get("selector"), labels_of(pod))
        and status_of(budget).get("disruptionsAllowed", 1) < 1
        for budget in budgets
    )


def is_plan_of(secret: Body, machine: str) -> bool:
    is_plan = secret.get("type") == "rke.cattle.io/machine-plan"
    return is_plan and labels_of(secret).get("rke.cattle.io/machine-name") == machine
