"""The named searches, one row each. Their names are declared in `renderer.catalog.searches`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from reconcile.diagnosis.searches import leaving, machines, nodes, rancher, refusals, storage, turns, work
from reconcile.diagnosis.situation import Cause, Situation

Searcher = Callable[[Situation], Iterator[Cause]]

SEARCHERS: Mapping[str, Searcher] = {
    "conflicts": refusals.conflicts,
    "refusals": refusals.others,
    "pausedNodes": turns.held,
    "goneObjects": work.gone_objects,
    "unwellNodes": nodes.unwell,
    "overdueNodes": nodes.overdue,
    "nodesWithoutMachine": machines.nobodys_nodes,
    "leftMachinePlans": machines.nodeless,
    "volumes": storage.volumes,
    "imports": work.images,
    "failedJobs": work.failed_jobs,
    "pods": work.pods,
    "lostNodes": work.stuck_plans,
    "machinesWithoutNode": rancher.nodeless_machines,
    "provisioning": rancher.provisioning,
    "rancherReports": rancher.reports,
    "unanswered": turns.unanswered,
    "untaken": turns.untaken,
    "askedTogether": turns.asked_together,
    "unpicked": turns.unpicked,
    "deletedObjects": leaving.objects,
    "refusedReturn": leaving.refused,
}
