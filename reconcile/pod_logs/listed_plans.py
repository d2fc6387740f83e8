"""Tells a collector of the plans that a cluster has, where no loop does: in a process of its own."""

from __future__ import annotations

from reconcile.decide.plan import is_over
from reconcile.loop.plan_round import PLANS
from reconcile.observe.source import Source
from reconcile.pod_logs.log_collector import LogCollector
from reconcile.probes.look import ReadFailure
from reconcile.status.plan_body import outline_of
from renderer.model.ref import Body


class ListedPlans:
    """`look` lists them. A plan that has ended is followed once more, also one that had ended before this process
    began, and so is one that is gone."""

    def __init__(self, source: Source, collector: LogCollector) -> None:
        self._source, self._collector = source, collector
        self._over: dict[str, bool] = {}

    def look(self) -> None:
        """Raises `Away` and its like."""
        found = self._source.list(PLANS)
        if isinstance(found, ReadFailure):
            self._collector.say("logs are not collected", found.why)
            return
        plans = {str(plan["metadata"]["name"]): plan for plan in found}
        for name in [name for name in self._over if name not in plans]:
            self._collector.follow(name, None, over=True)
            del self._over[name]
        for name, plan in plans.items():
            self._follow(name, plan)

    def _follow(self, name: str, plan: Body) -> None:
        over = is_over(outline_of(plan))
        if not (over and self._over.get(name)):
            self._collector.follow(name, plan, over=over)
        self._over[name] = over
