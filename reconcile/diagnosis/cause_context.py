"""The names that texts and expressions of known causes see beside the objects of a match."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconcile.diagnosis.searches.storage import last_replicas
from reconcile.diagnosis.situation import Situation, condition_of, is_for_rancher, kubectl
from reconcile.status.times import time_text
from renderer.model.ref import Body, ref_of


def names_of(situation: Situation) -> Mapping[str, Any]:
    """`upgrade` and the functions of the language."""
    return {
        "upgrade": _upgrade(situation),
        "condition": condition_of,
        "ref": lambda body: str(ref_of(body)),
        "kubectl": lambda verb, body: kubectl(str(verb), ref_of(body)),
        "ours": situation.is_ours,
        "since": lambda node: situation.since(str(node)),
        "lastReplicas": lambda node: list(last_replicas(situation, str(node))),
    }


def _upgrade(situation: Situation) -> Mapping[str, Any]:
    rancher = [wait for wait in situation.waits if is_for_rancher(wait)]
    return {
        "plan": situation.plan,
        "phases": list(situation.phases),
        "nodes": list(situation.nodes),
        "states": dict(situation.states),
        "busy": list(situation.busy),
        "upgraded": sorted(situation.upgraded),
        "paused": list(situation.paused),
        "rebooting": [node for node, reboot in situation.reboots.items() if not reboot.overdue],
        "waitsForNode": any(wait.node for wait in situation.waits),
        "waitsForRancher": bool(rancher),
        "slow": any(wait.slow for wait in situation.waits),
        "slowNodes": sorted({wait.node for wait in situation.waits if wait.slow and wait.node}),
        "slowRancher": any(wait.slow for wait in rancher),
        "now": time_text(situation.now),
    }


def blamed(body: Body) -> str:
    """An object by kind, namespace and name."""
    return " ".join(str(ref_of(body)).split())
