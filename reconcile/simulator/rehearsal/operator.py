"""The person who runs the upgrade, played: looks at a node that is held for a while, then lets it go on."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from reconcile.cluster.errors import ClusterError
from reconcile.cluster.protocol import Cluster
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, Ref

_HELD = "UpgradePaused"


class Operator:
    """Resumes each held node `after` it was first seen held."""

    def __init__(self, cluster: Cluster, kinds: Kinds, plan: Ref, after: timedelta) -> None:
        self._cluster = cluster
        self._kind = kinds.row(plan.api_version, plan.kind).kind
        self._plan = plan
        self._after = after
        self._held: dict[str, datetime] = {}

    def step(self, now: datetime) -> bool:
        """True if a node was resumed."""
        plan = self._look()
        held = _held_nodes(plan)
        self._held = {node: self._held.get(node, now) for node in held}
        due = [node for node, since in self._held.items() if now - since >= self._after]
        return bool(due) and self._resume(plan, due)

    def next_due(self) -> datetime | None:
        return min((since + self._after for since in self._held.values()), default=None)

    def _look(self) -> Body:
        try:
            return self._cluster.get(self._kind, self._plan).body
        except ClusterError:
            return {}

    def _resume(self, plan: Body, nodes: list[str]) -> bool:
        left = [node for node in _paused(plan) if node not in nodes]
        patch = {"spec": {"nodeUpgradeOption": {"pauseNodes": left}}}
        try:
            self._cluster.patch(self._kind, self._plan, patch, field_manager="operator")
        except ClusterError:
            return False
        for node in nodes:
            del self._held[node]
        return True


def _held_nodes(plan: Body) -> list[str]:
    states: dict[str, Any] = (plan.get("status") or {}).get("nodeUpgradeStatuses") or {}
    return sorted(node for node in set(_paused(plan)) if (states.get(node) or {}).get("state") == _HELD)


def _paused(plan: Body) -> list[str]:
    return list(((plan.get("spec") or {}).get("nodeUpgradeOption") or {}).get("pauseNodes") or ())
