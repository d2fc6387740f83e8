"""Reports the plans of many clusters in one table: a row for each plan, and for each cluster that is away."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from reconcile.report.progress import age_of
from reconcile.status.plan import FAILED
from reconcile.status.plan_body import status_of
from reconcile.status.times import time_text
from renderer.errors import Problem
from renderer.model.node_state import NodeStates
from renderer.model.ref import Body

Model = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlans:
    """The plans of one cluster, by the name that the user knows it by; or why they are not known."""

    cluster: str
    plans: tuple[Body, ...] = ()
    problem: Problem | None = None


def plans_of_clusters(found: Iterable[ClusterPlans], states: NodeStates, now: datetime, name: str | None) -> Model:
    """The model of `status` of many clusters. With a `name` it has only the plans that are called so."""
    clusters = [_cluster(item, states, name) for item in found]
    return {
        "clusters": clusters,
        "failed": sum(plan["phase"] == FAILED for item in clusters for plan in item["plans"]),
        "away": sum("problem" in item for item in clusters),
        "at": time_text(now),
    }


def table_of_clusters(model: Model) -> Iterator[tuple[str, ...]]:
    """The rows of the table, the heading first."""
    yield ("CLUSTER", "PLAN", "PHASE", "NODES", "FOR", "MESSAGE")
    for item in model["clusters"]:
        if "problem" in item:
            yield (item["cluster"], "?", "Unknown", "", "", item["problem"]["message"])
        elif not item["plans"]:
            yield (item["cluster"], "-", "", "", "", "")
        for plan in item["plans"]:
            nodes = f"{plan['nodes']['upgraded']}/{plan['nodes']['all']}" if plan["nodes"]["all"] else ""
            age = age_of(plan["since"], model["at"]).removeprefix(" (for ").rstrip(")")
            yield (item["cluster"], plan["plan"], plan["phase"] or "-", nodes, age, plan["message"])


def _cluster(found: ClusterPlans, states: NodeStates, name: str | None) -> Model:
    if found.problem is not None:
        remedy = {"remedy": found.problem.remedy} if found.problem.remedy else {}
        problem = {"reason": found.problem.reason, "message": found.problem.message, **remedy}
        return {"cluster": found.cluster, "plans": [], "problem": problem}
    plans = (_plan(body, states) for body in found.plans if name in (None, body["metadata"]["name"]))
    return {"cluster": found.cluster, "plans": sorted(plans, key=lambda plan: (plan["created"], plan["plan"]))}


def _plan(body: Body, states: NodeStates) -> Model:
    status, spec = status_of(body), body.get("spec") or {}
    nodes = status.node_states.values()
    return {
        "plan": body["metadata"]["name"],
        "created": body["metadata"].get("creationTimestamp") or "",
        "version": spec.get("version") or "",
        "image": spec.get("image") or "",
        "phase": status.phase,
        "message": (status.condition("Progressing") or {}).get("message", ""),
        "since": _since(status.rest),
        "nodes": {
            "all": len(nodes),
            "upgraded": sum(states.is_upgraded(str(node.get("state"))) for node in nodes),
        },
    }


def _since(rest: Mapping[str, Any]) -> str:
    """The last time that the phase became another one."""
    times = [entry.get("phaseTransitionTimestamp") or "" for entry in rest.get("phaseTransitionTimestamps") or ()]
    return max(times, default="")
