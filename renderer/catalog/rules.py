"""The named rules of the probe language, for what needs arithmetic or several objects.

A table of names, arguments and descriptions. `reconcile.probes` evaluates the rules; nothing here looks at an object.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import StrEnum

from renderer.frozen import frozen


class RuleSubject(StrEnum):
    """The subject of a rule."""

    OBJECT = "object"  # the probe's target; the rule belongs to the kinds that `kinds` names
    CLUSTER = "cluster"  # it finds its own objects, or needs none


@frozen
class RuleSpec:
    """`words` is a predicate that follows the subject (`{name}` stands for an argument); a rule about the cluster
    has no subject, and `words` is the whole sentence.

    `render_time`: the arguments alone decide, so a refusal is reported before a cluster is asked.
    """

    words: str
    subject: RuleSubject
    kinds: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    render_time: bool = False


RULES: Mapping[str, RuleSpec] = {
    "podReady": RuleSpec(words="is Ready or has Succeeded", subject=RuleSubject.OBJECT, kinds=("Pod",)),
    "serviceHasReadyEndpoint": RuleSpec(words="has a ready endpoint", subject=RuleSubject.OBJECT, kinds=("Service",)),
    "addonSettled": RuleSpec(
        words="is deployed if enabled, disabled if not", subject=RuleSubject.OBJECT, kinds=("Addon",)
    ),
    "jobFailed": RuleSpec(
        words="is not Complete and a Job of it has failed", subject=RuleSubject.OBJECT, kinds=("Plan",)
    ),
    "volumeInUse": RuleSpec(words="is used by a pod that runs", subject=RuleSubject.OBJECT, kinds=("Volume",)),
    "noEviction": RuleSpec(words="evicts no replicas", subject=RuleSubject.OBJECT, kinds=("Node",)),
    "replicasComplete": RuleSpec(
        words="every detached volume has as many replicas as it should, or as there are nodes for them",
        subject=RuleSubject.CLUSTER,
    ),
    "volumesOutlast": RuleSpec(
        words="every volume in use that has several replicas has a healthy one on another node than {node}",
        subject=RuleSubject.CLUSTER,
        required=("node",),
    ),
    "drainAllowed": RuleSpec(
        words="no detached volume whose last replica is on {node} blocks the drain of the node",
        subject=RuleSubject.CLUSTER,
        required=("node",),
    ),
    "imageVolumesFit": RuleSpec(
        words="every PersistentVolumeClaim created from an image is at least as large as the image's content",
        subject=RuleSubject.CLUSTER,
    ),
    "storageNetworkAddresses": RuleSpec(
        words="the storage network has a free address for each of Longhorn's managers", subject=RuleSubject.CLUSTER
    ),
    "rwxNetworkAddresses": RuleSpec(
        words="the network for RWX volumes, if there is one, has a free address", subject=RuleSubject.CLUSTER
    ),
    "recentBackups": RuleSpec(
        words="every virtual machine has a backup that is not older than {days} days",
        subject=RuleSubject.CLUSTER,
        required=("days",),
    ),
    "backupTargetRefreshed": RuleSpec(
        words="has a refresh interval if a backup target is set", subject=RuleSubject.OBJECT, kinds=("Setting",)
    ),
    "canBeMoved": RuleSpec(
        words="every virtual machine that runs can be moved to another node", subject=RuleSubject.CLUSTER
    ),
    "leavesNode": RuleSpec(
        words="every virtual machine is moved or stopped when its node is drained", subject=RuleSubject.CLUSTER
    ),
    "detectorKnows": RuleSpec(
        words="Harvester's detector stops every virtual machine that KubeVirt cannot migrate",
        subject=RuleSubject.CLUSTER,
    ),
    "machinesToStop": RuleSpec(
        words="the virtual machines of {node} that Harvester's detector stops are known",
        subject=RuleSubject.CLUSTER,
        required=("node",),
    ),
    "hotplugSettled": RuleSpec(
        words="has no temporarily hot-plugged volume", subject=RuleSubject.OBJECT, kinds=("VirtualMachine",)
    ),
    "hostReports": RuleSpec(
        words="has a host that reports {path} as expected",
        subject=RuleSubject.OBJECT,
        kinds=("Node",),
        required=("path",),
        optional=("equals", "in", "atLeast", "atMost", "matches", "validHours"),
    ),
    "hostCertificate": RuleSpec(
        words="has a host whose RKE2 certificates are valid for at least {days} more days",
        subject=RuleSubject.OBJECT,
        kinds=("Node",),
        required=("days",),
        optional=("validHours",),
    ),
    "versionEligible": RuleSpec(
        words="version {current} may be upgraded to {target}",
        subject=RuleSubject.CLUSTER,
        required=("current", "target"),
        optional=("minimum", "strict"),
        render_time=True,
    ),
    "diskHeadroom": RuleSpec(
        words="{reserveBytes} bytes of new images keep every node's disk below its image garbage collection threshold",
        subject=RuleSubject.CLUSTER,
        required=("reserveBytes",),
        optional=("defaultThresholdPercent", "node", "skip", "skipAnnotation"),
    ),
    "certificateExpiry": RuleSpec(
        words="no certificate of the API servers ends within {days} days",
        subject=RuleSubject.CLUSTER,
        required=("days",),
        optional=("daysAnnotation",),
    ),
    "holds": RuleSpec(
        words="{says}",
        subject=RuleSubject.CLUSTER,
        required=("value", "says", "otherwise"),
    ),
    "found": RuleSpec(
        words="every named {kind} exists",
        subject=RuleSubject.CLUSTER,
        required=("apiVersion", "kind", "names"),
        optional=("namespace",),
    ),
    "windowsReadable": RuleSpec(
        words="the maintenance windows can be read", subject=RuleSubject.CLUSTER, required=("windows",)
    ),
    "windowOpen": RuleSpec(words="a maintenance window is open", subject=RuleSubject.CLUSTER, required=("windows",)),
    "machineOfNode": RuleSpec(
        words="has a Machine in fleet-local that names it", subject=RuleSubject.OBJECT, kinds=("Node",)
    ),
    "machineCount": RuleSpec(words="there are as many Machines as Nodes", subject=RuleSubject.CLUSTER),
    "witnessCount": RuleSpec(
        words="there are at most {atMost} witness nodes", subject=RuleSubject.CLUSTER, required=("atMost",)
    ),
    "hasTaint": RuleSpec(
        words="has taint {key}={value}:{effect}",
        subject=RuleSubject.OBJECT,
        kinds=("Node",),
        required=("key", "value", "effect"),
    ),
    "noDrainHooks": RuleSpec(
        words="Rancher's Cluster has none of the drain hooks {annotations}",
        subject=RuleSubject.CLUSTER,
        required=("annotations",),
    ),
    "etcdVoter": RuleSpec(words="votes in etcd", subject=RuleSubject.OBJECT, kinds=("Node",)),
    "isoArchitecture": RuleSpec(
        words="is for the architecture of the nodes", subject=RuleSubject.OBJECT, kinds=("Version",)
    ),
    "imageStorageClass": RuleSpec(
        words="names a StorageClass that exists", subject=RuleSubject.OBJECT, kinds=("VirtualMachineImage",)
    ),
    "pauseMap": RuleSpec(words="pauses nodes that exist", subject=RuleSubject.OBJECT, kinds=("Upgrade",)),
    "pauseNodesSetting": RuleSpec(words="pauses nodes that exist", subject=RuleSubject.OBJECT, kinds=("Setting",)),
    "borrowedReturned": RuleSpec(
        words="has returned every field that it has borrowed", subject=RuleSubject.OBJECT, kinds=("UpgradePlan",)
    ),
    "stoppedMachinesRun": RuleSpec(
        words="has restarted every virtual machine that it captured as {captured}",
        subject=RuleSubject.OBJECT,
        kinds=("UpgradePlan",),
        required=("captured",),
    ),
}


def misused(name: str, arguments: Collection[str], kind: str | None = None) -> str | None:
    """Explains what is wrong with naming this rule with these arguments on an object of this kind; None where nothing
    is.

    `kind` is empty for the cluster as a whole, and None where it is not known.
    """
    rule = RULES.get(name)
    if rule is None:
        return f"rule {name!r} not found; known rules: {', '.join(sorted(RULES))}"
    if kind is not None and rule.kinds and kind not in rule.kinds:
        return f"rule {name} is about {' and '.join(rule.kinds)}, not about {kind or 'the cluster as a whole'}"
    missing = [argument for argument in rule.required if argument not in arguments]
    unknown = sorted(set(arguments) - {*rule.required, *rule.optional})
    if missing:
        return f"rule {name} needs {', '.join(missing)}"
    if unknown:
        takes = ", ".join((*rule.required, *rule.optional)) or "no arguments"
        return f"rule {name} does not take {', '.join(unknown)}; it takes {takes}"
    return None
