"""Which virtual machines cannot leave a node alive, and why. Pure. Source: behaviour spec, periphery B3."""

from __future__ import annotations

from collections.abc import Sequence

from reconcile.simulator.actors.actor_context import has_condition, labels_of, status_of
from reconcile.simulator.actors.placement import is_witness, matches
from renderer.model.ref import Body

_UPGRADE = "harvesterhci.io/upgrade"


def why_tied(instance: Body, nodes: Sequence[Body]) -> str | None:
    """The detector's rules in its order, then the instance's own word; None if it can move."""
    spec, here = instance["spec"], status_of(instance).get("nodeName")
    if sum(not is_witness(node) for node in nodes) == 1:
        return "there is no other node"
    if spec.get("nodeSelector"):
        return "it has a node selector"
    if ((spec.get("domain") or {}).get("devices") or {}).get("hostDevices"):
        return "it has a device of the host"
    others = [node for node in nodes if node["metadata"]["name"] != here and not is_witness(node)]
    if not any(not node["spec"].get("unschedulable") and matches(node, spec) for node in others):
        return "no other node can take it"
    if has_condition(instance, "LiveMigratable", "False"):
        return "it says that it cannot migrate"
    return None


def is_restored(instance: Body) -> bool:
    """Whether it is to be started again: a paused one stays off, one of the upgrade's own is nobody's."""
    return not has_condition(instance, "Paused") and not labels_of(instance).get(_UPGRADE)
