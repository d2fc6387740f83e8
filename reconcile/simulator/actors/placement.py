"""Finds where a pod or a virtual machine can run: readiness, cordons, taints, selectors and required node affinity; and
why a virtual machine cannot be migrated. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconcile.objects import expression_holds
from reconcile.simulator.actors.actor_context import has_condition, labels_of, status_of
from renderer.model.ref import Body

WITNESS = "node-role.harvesterhci.io/witness"
DRAIN_TAINT = {"key": "kubevirt.io/drain", "value": "draining", "effect": "NoSchedule"}
CORDON_TAINT = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
ABSENT_TAINT = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
_UNWANTED = ("NoSchedule", "NoExecute")


def taints_of(node: Body) -> Sequence[Mapping[str, str]]:
    return (node.get("spec") or {}).get("taints") or ()


def with_taint(node: Body, taint: Mapping[str, str]) -> list[Mapping[str, str]]:
    return [*without_taint(node, taint), taint]


def without_taint(node: Body, taint: Mapping[str, str]) -> list[Mapping[str, str]]:
    return [each for each in taints_of(node) if each.get("key") != taint["key"]]


def is_tainted(node: Body, taint: Mapping[str, str]) -> bool:
    return any(each.get("key") == taint["key"] for each in taints_of(node))


def is_ready(node: Body) -> bool:
    return has_condition(node, "Ready")


def is_witness(node: Body) -> bool:
    return WITNESS in labels_of(node)


def can_host(node: Body, spec: Mapping[str, Any]) -> bool:
    """True if a pod or instance with this spec may start on the node now."""
    return is_ready(node) and _is_tolerated(node, spec) and matches(node, spec)


def matches(node: Body, spec: Mapping[str, Any]) -> bool:
    """Selector and required affinity only."""
    labels = {"metadata.name": str(node["metadata"]["name"]), **labels_of(node)}
    selector = spec.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms")
    return terms is None or any(_matches_term(labels, term) for term in terms)


def _is_tolerated(node: Body, spec: Mapping[str, Any]) -> bool:
    taints = list(taints_of(node))
    if (node.get("spec") or {}).get("unschedulable") and not is_tainted(node, CORDON_TAINT):
        taints.append(CORDON_TAINT)
    tolerations = spec.get("tolerations") or ()
    return all(_tolerates(tolerations, taint) for taint in taints if taint.get("effect") in _UNWANTED)


def _tolerates(tolerations: Iterable[Mapping[str, str]], taint: Mapping[str, str]) -> bool:
    return any(
        each.get("key") in (None, "", taint["key"])
        and each.get("effect") in (None, "", taint.get("effect"))
        and (each.get("operator") == "Exists" or (each.get("value") or "") == (taint.get("value") or ""))
        for each in tolerations
    )


def _matches_term(labels: Mapping[str, str], term: Mapping[str, Any]) -> bool:
    expected = (*(term.get("matchExpressions") or ()), *(term.get("matchFields") or ()))
    return bool(expected) and all(expression_holds(labels, each) for each in expected)


_UPGRADE = "harvesterhci.io/upgrade"


def why_tied(instance: Body, nodes: Sequence[Body]) -> str | None:
    """The rules of Harvester's vm-live-migrate-detector in its order, then the instance's own condition.

    None if it can be migrated.
    """
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
    """True if it is to be started again: a paused one stays off, one of the upgrade's own is nobody's."""
    return not has_condition(instance, "Paused") and not labels_of(instance).get(_UPGRADE)
