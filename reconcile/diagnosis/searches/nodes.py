"""Unhealthy nodes, and nodes that do not come back: what they run, what they are to run, and the way out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from reconcile.diagnosis.situation import NODES, Cause, ExpectedReboot, Situation, condition_of, text
from reconcile.status.times import time_of
from renderer.model.ref import Body, ref_of

_STARTS = timedelta(minutes=15)
"""The time that a node that reboots may take to be Ready."""

_OLD_IMAGE = (
    "look at its console: it has booted the old image, or cannot read /oem/90_custom.yaml; repair it and reboot it"
)


def unwell(situation: Situation) -> Iterator[Cause]:
    """While a node is waited for: every node of the upgrade that is not Ready."""
    if not any(wait.node for wait in situation.waits):
        return
    for node in _nodes(situation):
        condition = condition_of(node, "Ready")
        if condition.get("status") != "True":
            name, reboot = ref_of(node).name, situation.reboots.get(ref_of(node).name)
            patient = _is_expected(situation, text(condition, "lastTransitionTime"), reboot)
            yield Cause(
                object=f"Node {name}",
                what=f"is not ready: {_ready(node)}"
                + (_expected(node, reboot) if reboot else _holds_up(situation, name)),
                node=name,
                since=text(condition, "lastTransitionTime"),
                remedy="wait: it may be rebooting" if patient else _reboot(node, reboot) + _lost(situation, name),
                patient=patient,
            )


def overdue(situation: Situation) -> Iterator[Cause]:
    """Nodes that are Ready, and are not yet what they were to come back as."""
    for node in _nodes(situation):
        name, reboot = ref_of(node).name, situation.reboots.get(ref_of(node).name)
        if reboot is not None and reboot.overdue and condition_of(node, "Ready").get("status") == "True":
            what = "has rebooted" if _has_rebooted(node, reboot) else "has not rebooted"
            yield Cause(
                object=f"Node {name}",
                what=what + _expected(node, reboot),
                node=name,
                since=situation.since(name),
                remedy=_reboot(node, reboot),
            )


def _nodes(situation: Situation) -> Iterator[Body]:
    return (node for node in situation.all(NODES) if ref_of(node).name in situation.nodes)


def _is_expected(situation: Situation, since: str, reboot: ExpectedReboot | None) -> bool:
    """True if the node may be down: it reboots, or Kubernetes is being upgraded on it."""
    if reboot is not None:
        return not reboot.overdue
    return bool(since) and situation.now - time_of(since) < _STARTS


def _ready(node: Body) -> str:
    condition = condition_of(node, "Ready")
    said = ": ".join(part for part in (text(condition, "reason"), text(condition, "message")) if part)
    return f"Ready is {text(condition, 'status') or 'Unknown'}" + (f" ({said})" if said else "")


def _expected(node: Body, reboot: ExpectedReboot) -> str:
    return f"; it runs {_os(node)}, expected {reboot.os}, a new boot and Ready"


def _holds_up(situation: Situation, node: str) -> str:
    others = [name for name in situation.held_up if name != node]
    return f", and holds up {', '.join(others)}" if others else ""


def _reboot(node: Body, reboot: ExpectedReboot | None) -> str:
    if reboot is None or not _has_rebooted(node, reboot):
        upgraded = reboot is not None and _os(node) == reboot.os
        return "reboot the node" if upgraded else "look at its console and reboot it"
    return _OLD_IMAGE if _os(node) != reboot.os else "look at its console"


def _lost(situation: Situation, node: str) -> str:
    """Removing a Machine is what Harvester's host page does as well."""
    if len(situation.nodes) < 2:
        return ""
    machine = situation.machine(node)
    what = f"machines.cluster.x-k8s.io -n fleet-local {machine}" if machine else f"node {node}"
    return f"; if it is lost for good, delete it and the upgrade continues without it: kubectl delete {what}"


def _has_rebooted(node: Body, reboot: ExpectedReboot) -> bool:
    return text(node, "status", "nodeInfo", "bootID") != reboot.boot


def _os(node: Body) -> str:
    return text(node, "status", "nodeInfo", "osImage") or "an unknown OS"
