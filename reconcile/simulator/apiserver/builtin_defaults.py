"""The defaults of built-in kinds, as data: what the API server fills in when a manifest does not say.

Only what the kinds of `schemas/kubernetes` can reach. Source: k8s.io/kubernetes 1.35, pkg/apis/*/v1/defaults.go. What
admission plugins add to a Pod (token volume, tolerations, priority) is left out: the product creates no bare Pod.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from reconcile.simulator.apiserver.builtin_setup import TEMPLATE_GENERATION

Content = Callable[[dict[str, Any]], dict[str, Any]]

_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_CONTAINER = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
_EVERYTHING: dict[str, Any] = {}
_RBAC = "rbac.authorization.k8s.io"

VALUES: Mapping[str, Mapping[str, Any]] = {
    "admissionregistration.v1.MatchResources": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": _EVERYTHING,
        "objectSelector": _EVERYTHING,
    },
    "admissionregistration.v1.NamedRuleWithOperations": {"scope": "*"},
    "admissionregistration.v1.ValidatingAdmissionPolicySpec": {"failurePolicy": "Fail"},
    "apps.v1.DaemonSetSpec": {"revisionHistoryLimit": 10},
    "apps.v1.DaemonSetUpdateStrategy": {"type": "RollingUpdate"},
    "apps.v1.DeploymentSpec": {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600},
    "apps.v1.DeploymentStrategy": {"type": "RollingUpdate"},
    "apps.v1.ReplicaSetSpec": {"replicas": 1},
    "apps.v1.RollingUpdateDaemonSet": {"maxUnavailable": 1, "maxSurge": 0},
    "apps.v1.RollingUpdateDeployment": {"maxUnavailable": "25%", "maxSurge": "25%"},
    "apps.v1.RollingUpdateStatefulSetStrategy": {"partition": 0},
    "apps.v1.StatefulSetPersistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    "apps.v1.StatefulSetSpec": {
        "podManagementPolicy": "OrderedReady",
        "replicas": 1,
        "revisionHistoryLimit": 10,
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    },
    "batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status": "True"},
    "core.v1.ConfigMapVolumeSource": {"defaultMode": 0o644},
    "core.v1.Container": _CONTAINER,
    "core.v1.ContainerPort": {"protocol": "TCP"},
    "core.v1.DownwardAPIVolumeSource": {"defaultMode": 0o644},
    "core.v1.EphemeralContainer": _CONTAINER,
    "core.v1.GRPCAction": {"service": ""},
    "core.v1.HTTPGetAction": {"path": "/", "scheme": "HTTP"},
    "core.v1.HostPathVolumeSource": {"type": ""},
    "core.v1.NamespaceStatus": {"phase": "Active"},
    "core.v1.ObjectFieldSelector": {"apiVersion": "v1"},
    "core.v1.PersistentVolumeClaimSpec": {"volumeMode": "Filesystem"},
    "core.v1.PersistentVolumeClaimStatus": {"phase": "Pending"},
    "core.v1.PodSpec": {
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    },
    "core.v1.Probe": _PROBE,
    "core.v1.ProjectedVolumeSource": {"defaultMode": 0o644},
    "core.v1.Secret": {"type": "Opaque"},
    "core.v1.SecretVolumeSource": {"defaultMode": 0o644},
    "core.v1.ServiceAccountTokenProjection": {"expirationSeconds": 3600},
    "core.v1.ServicePort": {"protocol": "TCP"},
    "core.v1.ServiceSpec": {"sessionAffinity": "None", "type": "ClusterIP"},
    "discovery.v1.EndpointPort": {"name": "", "protocol": "TCP"},
    "rbac.v1.RoleRef": {"apiGroup": _RBAC},
    "storage.v1.StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
}


def _container(out: dict[str, Any]) -> dict[str, Any]:
    tag = out.get("image", "").rpartition("@")[0] or out.get("image", "")
    latest = ":" not in tag.rpartition("/")[2] or tag.endswith(":latest")
    pinned = "@" in out.get("image", "")
    return {"imagePullPolicy": "Always" if latest and not pinned else "IfNotPresent", **out}


def _volume(out: dict[str, Any]) -> dict[str, Any]:
    return out if set(out) - {"name"} else {**out, "emptyDir": {}}


def _pod_spec(out: dict[str, Any]) -> dict[str, Any]:
    """The old name of the service account is kept equal to the new one; host ports follow from the host's network."""
    account = out.get("serviceAccountName") or out.get("serviceAccount")
    return {**out, "serviceAccountName": account, "serviceAccount": account} if account else out


def _pod(out: dict[str, Any]) -> dict[str, Any]:
    return {**out, "spec": {"enableServiceLinks": True, **out["spec"]}}


def _job(out: dict[str, Any]) -> dict[str, Any]:
    labels = (out["spec"]["template"].get("metadata") or {}).get("labels")
    if labels and not out["metadata"].get("labels"):
        out = {**out, "metadata": {**out["metadata"], "labels": labels}}
    return {**out, "spec": _job_defaults(out["spec"]) | out["spec"]}


def _job_defaults(spec: dict[str, Any]) -> dict[str, Any]:
    defaults = {
        "parallelism": 1,
        "backoffLimit": 2147483647 if "backoffLimitPerIndex" in spec else 6,
        "completionMode": "NonIndexed",
        "suspend": False,
        "podReplacementPolicy": "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed",
        "manualSelector": False,
    }
    return defaults if "parallelism" in spec else {"completions": 1, **defaults}


def _rolling(out: dict[str, Any], rolling: Mapping[str, Any]) -> dict[str, Any]:
    return {"rollingUpdate": dict(rolling), **out} if out["type"] == "RollingUpdate" else out


def _deployment_strategy(out: dict[str, Any]) -> dict[str, Any]:
    return _rolling(out, VALUES["apps.v1.RollingUpdateDeployment"])


def _daemon_set_strategy(out: dict[str, Any]) -> dict[str, Any]:
    return _rolling(out, VALUES["apps.v1.RollingUpdateDaemonSet"])


def _stateful_set_strategy(out: dict[str, Any]) -> dict[str, Any]:
    """Only a strategy that is left out gets its partition."""
    return out if out.get("type") else {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}, **out}


def _secret(out: dict[str, Any]) -> dict[str, Any]:
    """`stringData` can only be written: it becomes part of `data`."""
    texts = out.pop("stringData", None) or {}
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
    return {**out, "data": {**(out.get("data") or {}), **encoded}} if encoded else out


def _service_spec(out: dict[str, Any]) -> dict[str, Any]:
    kind = out["type"]
    if out["sessionAffinity"] == "ClientIP":
        out = {"sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}, **out}
    if kind in ("NodePort", "LoadBalancer"):
        out = {"externalTrafficPolicy": "Cluster", **out}
    if kind == "LoadBalancer":
        out = {"allocateLoadBalancerNodePorts": True, **out}
    return out if kind == "ExternalName" else {"internalTrafficPolicy": "Cluster", **out}


def _service_port(out: dict[str, Any]) -> dict[str, Any]:
    return out if out.get("targetPort") else {**out, "targetPort": out["port"]}


def _namespace(out: dict[str, Any]) -> dict[str, Any]:
    metadata = out["metadata"]
    if not metadata.get("name"):
        return out
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    return {**out, "metadata": {**metadata, "labels": labels}}


def _daemon_set(out: dict[str, Any]) -> dict[str, Any]:
    """Counts the changes of its template, for clients of an API that is long gone."""
    annotations = {TEMPLATE_GENERATION: "1", **(out["metadata"].get("annotations") or {})}
    return {**out, "metadata": {**out["metadata"], "annotations": annotations}}


def _definition_spec(out: dict[str, Any]) -> dict[str, Any]:
    names = out["names"]
    defaults = {"listKind": f"{names['kind']}List", "singular": names["kind"].lower()}
    return {"conversion": {"strategy": "None"}, **out, "names": {**defaults, **names}}


def _node_status(out: dict[str, Any]) -> dict[str, Any]:
    return {"allocatable": out["capacity"], **out} if out.get("capacity") else out


def _subject(out: dict[str, Any]) -> dict[str, Any]:
    return {"apiGroup": _RBAC, **out} if out["kind"] in ("User", "Group") else out


CONTENT: Mapping[str, Content] = {
    "apps.v1.DaemonSet": _daemon_set,
    "apps.v1.DaemonSetUpdateStrategy": _daemon_set_strategy,
    "apps.v1.DeploymentStrategy": _deployment_strategy,
    "apps.v1.StatefulSetUpdateStrategy": _stateful_set_strategy,
    "batch.v1.Job": _job,
    "core.v1.Container": _container,
    "core.v1.Namespace": _namespace,
    "core.v1.NodeStatus": _node_status,
    "core.v1.Pod": _pod,
    "core.v1.PodSpec": _pod_spec,
    "core.v1.Secret": _secret,
    "core.v1.ServicePort": _service_port,
    "core.v1.ServiceSpec": _service_spec,
    "core.v1.Volume": _volume,
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinitionSpec": _definition_spec,
    "rbac.v1.Subject": _subject,
}
