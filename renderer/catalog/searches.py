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
    "conflicts": SearchSpec(words="objects that the plan has to create and that belong to somebody else"),
    "refusals": SearchSpec(words="refused writes that no other cause explains"),
    "pausedNodes": SearchSpec(words="nodes that the operator has paused, and the nodes that wait for them"),
    "goneObjects": SearchSpec(words="objects that a step has created and waits for, and that were deleted"),
    "unwellNodes": SearchSpec(words="nodes of the upgrade that are not Ready while a node is waited for"),
    "overdueNodes": SearchSpec(words="nodes that are Ready but do not run the new release yet"),
    "nodesWithoutMachine": SearchSpec(words="nodes without a Machine, which Rancher cannot upgrade"),
    "leftMachinePlans": SearchSpec(words="machine-plan Secrets that are waited for and belong to no node"),
    "volumes": SearchSpec(words="unhealthy volumes while a node is upgraded, and replicas that are being rebuilt"),
    "imports": SearchSpec(words="image imports that are in progress, or fail repeatedly"),
    "failedJobs": SearchSpec(words="Jobs of the plan that have failed"),
    "pods": SearchSpec(words="pods of the plan that do not run or have failed, and why"),
    "lostNodes": SearchSpec(words="Plans that apply to a node without an active Job"),
    "machinesWithoutNode": SearchSpec(words="Machines whose node has not joined while Rancher is waited for"),
    "provisioning": SearchSpec(words="Cluster API's Cluster while its phase is not Provisioned"),
    "rancherReports": SearchSpec(words="what Rancher and Cluster API report of the cluster and its Machines"),
    "unanswered": SearchSpec(words="Machines whose upgrade Rancher has started and does not continue"),
    "untaken": SearchSpec(words="upgraded Machines that Rancher still asks to drain"),
    "askedTogether": SearchSpec(words="nodes that Rancher asks to drain at the same time"),
    "unpicked": SearchSpec(words="Machines that wait for Rancher while it is busy with another one"),
    "deletedObjects": SearchSpec(words="objects that a plan waits for while it is being deleted"),
    "refusedReturn": SearchSpec(words="requests of a plan that is being deleted which the API server refuses"),
}
