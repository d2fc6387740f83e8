"""Whose turn it is: nodes that are held, machines that Rancher has not picked and why, a paused cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconcile.objects import label
from reconcile.report.causes.cause import CLUSTERS, MACHINE_PLANS, MACHINES, Cause, Sight, mapping, text
from renderer.model.path import look_up
from renderer.model.ref import Body, ref_of

_ASKED = "rke.cattle.io/pre-drain"


def held(sight: Sight) -> Iterator[Cause]:
    """Nodes that the operator holds, and whom they hold up."""
    for node in sorted(node for node, state in sight.states.items() if state == "UpgradePaused"):
        others = [name for name in _unpicked(sight) if name != node]
        also = f", and holds up {', '.join(others)}: one machine is upgraded at a time" if others else ""
        yield Cause(
            object=f"Node {node}",
            what=f"is held by spec.nodeUpgradeOption.pauseNodes{also}",
            node=node,
            since=sight.since(node),
            remedy=f"upgradeplan resume {node} --plan {sight.plan}",
        )


def paused_cluster(sight: Sight) -> Iterator[Cause]:
    """Cluster API does nothing on a cluster that is paused, and says so nowhere."""
    for cluster in sight.all(CLUSTERS):
        ref = ref_of(cluster)
        if look_up(cluster, ("spec", "paused")) is True:
            yield Cause(
                object=f"Cluster {ref.namespace}/{ref.name} (cluster.x-k8s.io)",
                what="is paused, so no machine is upgraded",
                remedy=f"kubectl patch clusters.cluster.x-k8s.io -n {ref.namespace} {ref.name} --type merge "
                """-p '{"spec":{"paused":false}}'""",
            )


def unpicked(sight: Sight) -> Iterator[Cause]:
    """Machines that wait for Rancher, while it is busy with another one."""
    busy = sorted({*sight.busy, *(node for node, state in sight.states.items() if state == "UpgradePaused")})
    for node, machine in _unpicked(sight).items():
        others = [name for name in busy if name != node]
        if others:
            what, remedy = f"Rancher is busy with {', '.join(others)}", "wait; its turn comes"
        else:
            what = "Rancher has not picked it"
            remedy = "see what Rancher says: kubectl get clusters.provisioning.cattle.io -n fleet-local local -o yaml"
        yield Cause(
            object=f"Machine fleet-local/{machine}", what=what, node=node, since=sight.since(node), remedy=remedy
        )


def _unpicked(sight: Sight) -> Mapping[str, str]:
    """Node to Machine, of those that are waited for, have not begun, and that nobody has asked to drain."""
    secrets = {label(s, "rke.cattle.io/machine-name"): s for s in sight.all(MACHINE_PLANS) if _is_machine_plan(s)}
    waited = {wait.node for wait in sight.waits if wait.node}
    found = {}
    for machine in sight.all(MACHINES):
        name, node = ref_of(machine).name, text(machine, "status", "nodeRef", "name")
        asked = _ASKED in mapping(secrets.get(name, {}), "metadata", "annotations")
        if node in waited and node not in sight.busy and not asked and name in secrets:
            found[node] = name
    return dict(sorted(found.items()))


def _is_machine_plan(secret: Body) -> bool:
    return text(secret, "type") == "rke.cattle.io/machine-plan"
