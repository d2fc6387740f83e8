"""Finds where a pod or a virtual machine can run: readiness, cordons, taints, selectors and required node affinity.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconcile.objects import is_selected
from reconcile.simulator.actors.actor_context import has_condition
from renderer.model.ref import Body

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


def can_host(node: Body, spec: Mapping[str, Any]) -> bool:
    """True if a pod or instance with this spec may start on the node now."""
    return is_ready(node) and _is_tolerated(node, spec) and is_selected(node, spec)


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
