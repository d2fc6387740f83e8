"""The named rules, one row each. Their names and arguments are declared in `renderer.catalog.rules`."""

from __future__ import annotations

from collections.abc import Mapping

from reconcile.probes.rules import (
    addresses,
    backups,
    certificates,
    cluster_shape,
    disk,
    hosts,
    iso,
    machines,
    named,
    node_plans,
    pauses,
    plan_record,
    readiness,
    version,
    virtual_machines,
    volumes,
    windows,
)
from reconcile.probes.rules.call import Rule
from renderer.catalog.rules import misused
from renderer.errors import problem

RULES: Mapping[str, Rule] = {
    "podReady": readiness.pod_ready,
    "serviceHasReadyEndpoint": readiness.has_ready_endpoint,
    "addonSettled": readiness.addon_settled,
    "jobFailed": node_plans.job_failed,
    "volumeInUse": volumes.in_use,
    "noEviction": volumes.stays,
    "replicasComplete": volumes.replicas_complete,
    "volumesOutlast": volumes.survive,
    "drainAllowed": volumes.drain_allowed,
    "imageVolumesFit": volumes.images_fit,
    "storageNetworkAddresses": addresses.storage_network,
    "rwxNetworkAddresses": addresses.rwx_network,
    "recentBackups": backups.recent,
    "backupTargetRefreshed": backups.target_refreshed,
    "canBeMoved": virtual_machines.can_be_moved,
    "leavesNode": virtual_machines.leave,
    "detectorKnows": virtual_machines.overlooked,
    "machinesToStop": virtual_machines.to_stop,
    "hotplugSettled": virtual_machines.hotplug_settled,
    "hostReports": hosts.reports,
    "hostCertificate": hosts.certificate,
    "versionEligible": version.eligible,
    "diskHeadroom": disk.headroom,
    "certificateExpiry": certificates.expiry,
    "holds": named.holds,
    "found": named.found,
    "windowsReadable": windows.readable,
    "windowOpen": windows.is_open,
    "machineOfNode": machines.of_node,
    "machineCount": machines.as_many_as_nodes,
    "witnessCount": cluster_shape.witnesses,
    "hasTaint": cluster_shape.has_taint,
    "noDrainHooks": cluster_shape.no_drain_hooks,
    "etcdVoter": cluster_shape.votes,
    "isoArchitecture": iso.fits_nodes,
    "imageStorageClass": iso.has_storage_class,
    "pauseMap": pauses.of_map,
    "pauseNodesSetting": pauses.of_setting,
    "borrowedReturned": plan_record.returned,
    "stoppedMachinesRun": plan_record.machines_run,
}


def rule_named(name: str) -> Rule:
    """Raises `Problems` for a name that no rule has."""
    if name not in RULES:
        raise problem("InvalidRule", misused(name, ()) or f"rule {name} cannot be carried out")
    return RULES[name]
