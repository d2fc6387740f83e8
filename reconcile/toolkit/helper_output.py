"""Reports what a helper does: lines for the log of its pod, and events on the plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from reconcile.cluster.errors import ClusterError
from reconcile.cluster.events import EventSeverity, Occurrence, emit
from reconcile.cluster.protocol import Cluster
from renderer.model.plan_api import PLAN_KIND, plan_ref
from renderer.model.ref import Body, ref_of

Log = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperOutput:
    """`component` is what emits the events, on behalf of `node`; `plan` is empty where nothing is to be recorded."""

    cluster: Cluster
    component: str
    node: str
    plan: str
    now: Callable[[], datetime]
    log: Log

    def event(self, severity: EventSeverity, reason: str, message: str) -> None:
        """Emits an event on the plan; one that cannot be written is a line of the log, and nothing fails for it."""
        if not self.plan:
            return
        try:
            plan = get_plan(self.cluster, self.plan)
            self.log(f"Recording event for upgrade {self.plan}: {severity} {reason} {message}")
            emit(self.cluster, self._occurrence(plan, severity, reason, message))
        except ClusterError as error:
            self.log(f"record event failed for UpgradePlan {self.plan}: {error.message}")

    def _occurrence(self, plan: Body, severity: EventSeverity, reason: str, message: str) -> Occurrence:
        now = self.now()
        return Occurrence(
            regarding=ref_of(plan),
            uid=str(plan["metadata"]["uid"]),
            severity=severity,
            reason=reason,
            message=message,
            component=self.component,
            host=self.node,
            first=now,
            last=now,
        )


def get_plan(cluster: Cluster, name: str) -> Body:
    """Raises `ClusterError`."""
    return cluster.get(PLAN_KIND, plan_ref(name)).body
