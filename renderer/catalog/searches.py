"""The named searches for causes, for what needs arithmetic or the plan's own record.

A table of names and descriptions. `reconcile.diagnosis` carries them out; nothing here looks at an object.
"""

from __future__ import annotations

from collections.abc import Mapping

from renderer.frozen import frozen


@frozen
class SearchSpec:
    """`words` says what is found."""

    words: str


SEARCHES: Mapping[str, SearchSpec] = {
    "conflicts": SearchSpec(words="objects that the plan has to create and that somebody else has"),
    "refusals": SearchSpec(words="what the API server said to the last writes, where nothing else names it"),
    "pausedNodes": SearchSpec(words="nodes that the operator holds, and whom they hold up"),
    "goneObjects": SearchSpec(words="objects that a step under way has made and waits for, and that were deleted"),
    "unwellNodes": SearchSpec(words="nodes of the upgrade that are not Ready while a node is waited for"),
    "overdueNodes": SearchSpec(words="nodes that are Ready and are not yet what they were to come back as"),
    "nodesWithoutMachine": SearchSpec(words="nodes for which Rancher cannot ask"),
    "leftMachinePlans": SearchSpec(words="machine-plan Secrets that are waited for and belong to no node"),
    "volumes": SearchSpec(words="volumes in trouble while a node is upgraded, and what is being rebuilt"),
    "imports": SearchSpec(words="image imports that are under way, or fail again and again"),
    "failedJobs": SearchSpec(words="Jobs of the plan that have failed"),
    "pods": SearchSpec(words="pods of the plan that do not run, or did not live, and why"),
    "lostNodes": SearchSpec(words="Plans that apply to a node for which no Job is at work"),
    "machinesWithoutNode": SearchSpec(words="Machines whose node has not joined while Rancher is waited for"),
    "provisioning": SearchSpec(words="Cluster API's Cluster while it is in another phase than Provisioned"),
    "rancherReports": SearchSpec(words="what Rancher and Cluster API report of the cluster and its Machines"),
    "unanswered": SearchSpec(words="Machines that Rancher has begun with and does not go on with"),
    "untaken": SearchSpec(words="Machines that are upgraded and that Rancher still asks for"),
    "askedTogether": SearchSpec(words="nodes that Rancher asks for at the same time"),
    "unpicked": SearchSpec(words="Machines that wait for Rancher while it is busy with another one"),
    "deletedObjects": SearchSpec(words="objects that a plan waits for that is being deleted"),
    "refusedReturn": SearchSpec(words="what the API server said to a plan that is being deleted"),
}
