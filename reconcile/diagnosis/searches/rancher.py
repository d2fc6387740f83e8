"""Passes on what Rancher and Cluster API report of the cluster and its Machines while the plan waits for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from reconcile.diagnosis.situation import (
    CLUSTERS,
    MACHINES,
    NODES,
    PROVISIONING_CLUSTERS,
    RANCHER,
    Cause,
    Situation,
    entries,
    is_for_rancher,
    text,
)
from reconcile.status.times import time_text
from renderer.context.facts import node_of_machine
from renderer.model.path import look_up
from renderer.model.ref import Body, ref_of

_JOINS = timedelta(minutes=30)
"""The time that a new Machine may take to get its node."""
_TYPES = (
    "Updated",
    "Provisioned",
    "Ready",
    "ControlPlaneReady",
    "InfrastructureReady",
    "BootstrapReady",
    "NodeHealthy",
)
"""The conditions that say what is being waited for where they are not True."""
_PROVISIONED = "Provisioned"
_WAIT = "wait; Rancher is working on it"


@dataclass(frozen=True, slots=True)
class _Report:
    """A condition's message. `node` is empty where it is not about one node."""

    object: str
    node: str
    message: str
    since: str


def reports(situation: Situation) -> Iterator[Cause]:
    """The messages of conditions, each once, but of nodes at which Rancher waits for the plan. They are the usual
    progress until the plan's own wait takes too long."""
    patient = not any(wait.slow for wait in situation.waits if is_for_rancher(wait))
    ours = {wait.node for wait in situation.waits if wait.node and not is_for_rancher(wait)}
    for report in (report for report in _reports(situation) if report.node not in ours):
        yield Cause(
            object=report.object,
            what=f"Rancher reports: {report.message}" + _node_state(situation, report.node),
            node=report.node,
            since=report.since,
            remedy=_WAIT if patient else RANCHER,
            patient=patient,
        )


def provisioning(situation: Situation) -> Iterator[Cause]:
    """Cluster API's Cluster, while it is in another phase than Provisioned."""
    if not _waits(situation):
        return
    for cluster in situation.all(CLUSTERS):
        ref, phase = ref_of(cluster), text(cluster, "status", "phase")
        if phase not in ("", _PROVISIONED):
            said = next(_messages(cluster), ("", ""))
            yield Cause(
                object=f"Cluster {ref.namespace}/{ref.name} (cluster.x-k8s.io)",
                what=f"is in phase {phase}, expected {_PROVISIONED}" + (f": {said[0]}" if said[0] else ""),
                since=said[1],
                remedy=RANCHER,
            )


def nodeless_machines(situation: Situation) -> Iterator[Cause]:
    """Machines whose node has never joined: Rancher waits for them before it upgrades the others."""
    if not _waits(situation):
        return
    for machine in (item for item in situation.all(MACHINES) if not node_of_machine(item)):
        name, since = ref_of(machine).name, text(machine, "metadata", "creationTimestamp")
        patient = since > time_text(situation.now - _JOINS)
        phase = text(machine, "status", "phase")
        delete = f"kubectl delete machines.cluster.x-k8s.io -n fleet-local {name}"
        yield Cause(
            object=f"Machine fleet-local/{name}",
            what="has no node" + (f" and is in phase {phase}" if phase else "") + "; Rancher waits for it",
            since=since,
            remedy="wait; its node may be joining" if patient else f"if its node will not join, delete it: {delete}",
            patient=patient,
        )


def _waits(situation: Situation) -> bool:
    return any(map(is_for_rancher, situation.waits))


def _reports(situation: Situation) -> Iterator[_Report]:
    """Of Rancher's Cluster, and of Machines where that does not say the same."""
    if not _waits(situation):
        return
    said: list[str] = []
    nodes = {ref_of(machine).name: node_of_machine(machine) for machine in situation.all(MACHINES)}
    for body in (*situation.all(PROVISIONING_CLUSTERS), *situation.all(MACHINES)):
        for message, since in _messages(body):
            if not any(message in before for before in said):
                said.append(message)
                yield _report(body, message, since, nodes)


def _report(body: Body, message: str, since: str, nodes: Mapping[str, str]) -> _Report:
    """About the only Machine that the message names, or the object's own."""
    named = [name for name in nodes if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", message)]
    name = ref_of(body).name if body["kind"] == MACHINES.kind else named[0] if len(named) == 1 else ""
    whose = (
        f"Machine fleet-local/{name}" if name else f"Cluster fleet-local/{ref_of(body).name} (provisioning.cattle.io)"
    )
    return _Report(object=whose, node=nodes.get(name, ""), message=message, since=since)


def _messages(body: Body) -> Iterator[tuple[str, str]]:
    """Message and time of the conditions that are not True."""
    conditions = {item.get("type"): item for item in entries(body, "status", "conditions")}
    for item in (conditions[name] for name in _TYPES if name in conditions):
        if item.get("status") != "True" and (message := text(item, "message")):
            yield message, text(item, "lastTransitionTime") or text(item, "lastUpdateTime")


def _node_state(situation: Situation, name: str) -> str:
    """Says that the node is cordoned, and which kubelet it runs where that is not the one of the Cluster."""
    node = next((item for item in situation.all(NODES) if ref_of(item).name == name), {})
    clusters = situation.all(PROVISIONING_CLUSTERS)
    expected = text(clusters[0], "spec", "kubernetesVersion") if clusters else ""
    runs = text(node, "status", "nodeInfo", "kubeletVersion")
    old = f"; the kubelet of {name} is {runs}, expected {expected}" if runs and expected and runs != expected else ""
    return old + (f"; {name} is cordoned" if look_up(node, ("spec", "unschedulable")) is True else "")
