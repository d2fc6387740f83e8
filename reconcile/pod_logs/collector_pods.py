"""The collector of logs as it is on a cluster: whether it runs, and a pod of its template that reads its volume.

While the collector runs the reader goes to its node, since the volume is mounted on one node at a time. Logs that the
Harvester Upgrade Manager has collected are named.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconcile.objects import condition, controller, items
from reconcile.observe.source import Source
from reconcile.pod_logs.plan_pods import NAMESPACE
from reconcile.probes.look import Group, ReadFailure
from renderer.model.path import look_up
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body, Ref, ref_of

SECONDS = 600
"""The longest time for which a reader may run."""
COLLECTOR_LABELS = (("app.kubernetes.io/part-of", "upgradeplan"), ("app.kubernetes.io/component", "log-collector"))
_KEPT = ("imagePullSecrets", "nodeSelector", "securityContext", "tolerations", "volumes")
_HOST = "kubernetes.io/hostname"


def collectors_in(source: Source, namespace: str) -> tuple[Body, ...] | ReadFailure:
    """The Deployments of collectors that were installed there."""
    return source.list(Group(api_version="apps/v1", kind="Deployment", namespace=namespace, labels=COLLECTOR_LABELS))


def why_not_stored(source: Source, namespace: str) -> str:
    """The words on a collector that is wanted and does not run; empty where there is nothing to say."""
    found = collectors_in(source, namespace)
    for body in () if isinstance(found, ReadFailure) else found:
        ready = look_up(body, ("status", "readyReplicas"))
        if body["spec"].get("replicas") and not ready:
            listed = source.list(Group(api_version="v1", kind="Pod", namespace=namespace, labels=COLLECTOR_LABELS))
            labelled = () if isinstance(listed, ReadFailure) else listed
            pods = [pod for pod in labelled if controller(pod) and not is_ended(pod)]  # nothing controls a reader
            why = waits_for(pods[0]) if pods else "it has no pod"
            return f"logs are not stored: {ref_of(body)} is not ready: {why}; the upgrade does not wait for it"
    return ""


def other_collector(source: Source, plan: str) -> str:
    """The words on the UpgradeLog of a plan, with which the Harvester Upgrade Manager has collected its logs."""
    ref = Ref(api_version=PLAN_API_VERSION, kind="UpgradeLog", name=plan)
    log = source.get(ref)
    if log is None or isinstance(log, ReadFailure):
        return ""
    phase = look_up(log, ("status", "currentPhase")) or "not begun"
    pods = len(look_up(log, ("status", "trackedPods")) or ())
    deployment, scale = f"deployment {plan}-log-collector", f"kubectl -n {NAMESPACE} scale"
    up = f"{scale} {deployment} --replicas=1; " if phase == "Stopped" else ""
    volume = f"PersistentVolumeClaim {NAMESPACE}/{plan}-logs"
    read = f"{up}kubectl -n {NAMESPACE} logs {deployment.replace(' ', '/')} -c log-viewer"
    return (
        f"{ref} ({phase}): the Harvester Upgrade Manager has collected the logs of {pods} pods in {volume}; "
        f"read them: {read}; afterwards: {scale} {deployment} --replicas=0"
    )


def reader_of(deployment: Body, words: Sequence[str]) -> Body:
    """A Pod whose container runs `upgradeplan logs` with these words on the collector's folder."""
    template = deployment["spec"]["template"]
    labels, spec = template["metadata"]["labels"], template["spec"]
    (container,) = spec["containers"]
    _, folder, *others = container["args"]
    templates = [word for word in others if word.startswith("--templates=")]
    same_node = {"labelSelector": {"matchLabels": labels}, "topologyKey": _HOST}
    mounts = [
        {**mount, "readOnly": True} if mount["mountPath"] == folder else mount for mount in container["volumeMounts"]
    ]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{deployment['metadata']['name']}-reader-",
            "namespace": deployment["metadata"]["namespace"],
            "labels": dict(labels),
        },
        "spec": {
            **{key: spec[key] for key in _KEPT if key in spec},
            "restartPolicy": "Never",
            "activeDeadlineSeconds": SECONDS,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [same_node]}},
            "containers": [
                {
                    **container,
                    "name": "reader",
                    "args": ["logs", f"--from={folder}", "--output=json", *templates, *words],
                    "volumeMounts": mounts,
                }
            ],
        },
    }


def is_ended(pod: Body) -> bool:
    return look_up(pod, ("status", "phase")) in ("Succeeded", "Failed")


def waits_for(pod: Body) -> str:
    """The reason why the pod does not run yet, in Kubernetes' words."""
    return "; ".join(dict.fromkeys(_reasons(pod))) or "it has not ended"


def _reasons(pod: Body) -> Iterator[str]:
    scheduled = condition(pod, "PodScheduled")
    if scheduled is None or scheduled.status != "True":
        yield scheduled.message or scheduled.reason if scheduled else "it is not scheduled yet"
    for status in items(look_up(pod, ("status", "containerStatuses"))):
        waiting = (status.get("state") or {}).get("waiting") or {}
        yield from filter(None, [": ".join(filter(None, (waiting.get("reason"), waiting.get("message"))))])
