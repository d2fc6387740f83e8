"""What the API server does to built-in kinds beside their schema, as data: status, generation, fixed fields, set-up.

Source: k8s.io/kubernetes 1.35, pkg/registry/*/strategy.go and pkg/apis/*/validation. Rules of kinds that the product
does not write are only there where the loop or an actor can meet them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.cluster.errors import Cause
from reconcile.rehearsal.selectors import selects
from renderer.model.ref import Body

SetUp = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinRules:
    """One kind's row. `generation`: counts changes of spec. `keeps_status`: a create may bring a status."""

    status: bool = False
    generation: bool = False
    keeps_status: bool = False
    fixed: tuple[str, ...] = ()
    set_up: SetUp | None = None
    check: Callable[[Body], Iterator[Cause]] | None = None
    status_ignores: tuple[tuple[str, ...], ...] = (("spec",),)


def fixed_causes(rules: BuiltinRules, old: Body, new: Body) -> Iterator[Cause]:
    for path in rules.fixed:
        if _at(old, path) != _at(new, path):
            yield Cause(
                field=path, message=f"Invalid value: {_at(new, path)!r}: field is immutable", reason="FieldValueInvalid"
            )


def _at(body: Body, path: str) -> Any:
    value: Any = body
    for part in path.split("."):
        value = (value or {}).get(part)
    return value


def _with_labels(body: dict[str, Any], labels: Mapping[str, str]) -> dict[str, Any]:
    """Adds labels to the pod template; those that are there already win."""
    template = body["spec"]["template"]
    metadata = {**template["metadata"], "labels": {**labels, **(template["metadata"].get("labels") or {})}}
    return {**body, "spec": {**body["spec"], "template": {**template, "metadata": metadata}}}


def _job(body: dict[str, Any]) -> dict[str, Any]:
    """A Job selects its pods by a label with its own uid, unless it says that it does not want that."""
    if body["spec"]["manualSelector"]:
        return body
    name, uid = body["metadata"]["name"], body["metadata"]["uid"]
    by_uid = {"batch.kubernetes.io/controller-uid": uid}
    by_name = {"job-name": name, "batch.kubernetes.io/job-name": name}
    body = _with_labels(body, {**by_name, "controller-uid": uid, **by_uid})
    selector = body["spec"].get("selector") or {}
    matched = {**selector, "matchLabels": {**by_uid, **(selector.get("matchLabels") or {})}}
    return {**body, "spec": {**body["spec"], "selector": matched}}


def _service(body: dict[str, Any]) -> dict[str, Any]:
    spec = body["spec"]
    if spec["type"] == "ExternalName":
        return body
    address = spec.get("clusterIP") or _address(body["metadata"]["uid"])
    addresses = {"clusterIP": address, "clusterIPs": [address]}
    return {**body, "spec": {"ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", **spec, **addresses}}


def _address(uid: str) -> str:
    """An address of the usual range that follows from the uid alone."""
    number = int(uid[:8], 16)
    return f"10.43.{number >> 8 & 255}.{number & 255}"


def _namespace(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def _claim(body: dict[str, Any]) -> dict[str, Any]:
    """Admission protects a claim that a pod uses."""
    finalizers = [*(body["metadata"].get("finalizers") or ()), "kubernetes.io/pvc-protection"]
    metadata = {**body["metadata"], "finalizers": list(dict.fromkeys(finalizers))}
    return {**body, "metadata": metadata, "status": {"phase": "Pending"}}


def _pod(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "status": {"phase": "Pending", "qosClass": "BestEffort"}}


def _definition(body: dict[str, Any]) -> dict[str, Any]:
    """Kinds are served at once here, so the conditions that controllers would write are true from the start."""
    spec, names = body["spec"], body["spec"]["names"]
    singular = names.get("singular") or names["kind"].lower()
    named = {"listKind": f"{names['kind']}List", "singular": singular, **names}
    created = body["metadata"]["creationTimestamp"]
    conditions = [
        _condition("NamesAccepted", "NoConflicts", "no conflicts found", created),
        _condition("Established", "InitialNamesAccepted", "the initial names have been accepted", created),
    ]
    stored = [version["name"] for version in spec["versions"] if version["storage"]]
    status = {"acceptedNames": named, "conditions": conditions, "storedVersions": stored}
    return {**body, "spec": {"conversion": {"strategy": "None"}, **spec, "names": named}, "status": status}


def _condition(kind: str, reason: str, message: str, time: str) -> dict[str, Any]:
    return {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": time}


def _required(field: str, detail: str) -> Cause:
    return Cause(field=field, message=f"Required value: {detail}", reason="FieldValueRequired")


def _unsupported(field: str, value: Any, supported: str) -> Cause:
    message = f'Unsupported value: "{value}": supported values: {supported}'
    return Cause(field=field, message=message, reason="FieldValueNotSupported")


def _pod_causes(path: str, spec: Mapping[str, Any]) -> Iterator[Cause]:
    if not spec.get("containers"):
        yield _required(f"{path}.containers", "")
    for group in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(group) or ()):
            for name in ("name", "image"):
                if not container.get(name):
                    yield _required(f"{path}.{group}[{index}].{name}", "")


def _job_causes(body: Body) -> Iterator[Cause]:
    pod = body["spec"]["template"]["spec"]
    yield from _pod_causes("spec.template.spec", pod)
    if pod["restartPolicy"] == "Always":
        yield _unsupported("spec.template.spec.restartPolicy", "Always", '"OnFailure", "Never"')


def _workload_causes(body: Body) -> Iterator[Cause]:
    template = body["spec"]["template"]
    yield from _pod_causes("spec.template.spec", template["spec"])
    if template["spec"]["restartPolicy"] != "Always":
        yield _unsupported("spec.template.spec.restartPolicy", template["spec"]["restartPolicy"], '"Always"')
    selector = body["spec"].get("selector")
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not selector:
        yield _required("spec.selector", "")
    elif not selects(selector, labels):
        message = f"Invalid value: {labels!r}: `selector` does not match template `labels`"
        yield Cause(field="spec.template.metadata.labels", message=message, reason="FieldValueInvalid")


def _bare_pod_causes(body: Body) -> Iterator[Cause]:
    return _pod_causes("spec", body["spec"])


def _service_causes(body: Body) -> Iterator[Cause]:
    spec = body["spec"]
    if not spec.get("ports") and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        yield _required("spec.ports", "")


_JOB_FIXED = ("completions", "selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex")
_CLASS_FIXED = ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode")
_WORKLOAD = BuiltinRules(status=True, generation=True, fixed=("spec.selector",), check=_workload_causes)
_PLAIN = BuiltinRules()
_COUNTED = BuiltinRules(status=True, generation=True)
_BINDING = BuiltinRules(fixed=("roleRef",))

RULES: Mapping[str, BuiltinRules] = {
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": _COUNTED,
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": BuiltinRules(generation=True),
    "apiextensions.k8s.io/v1 CustomResourceDefinition": BuiltinRules(
        status=True,
        generation=True,
        fixed=("spec.group", "spec.scope", "spec.names.plural", "spec.names.kind"),
        set_up=_definition,
        status_ignores=(("metadata",), ("spec",)),
    ),
    "apps/v1 DaemonSet": _WORKLOAD,
    "apps/v1 Deployment": BuiltinRules(
        status=True,
        generation=True,
        fixed=("spec.selector",),
        check=_workload_causes,
        status_ignores=(("spec",), ("metadata", "labels")),
    ),
    "apps/v1 ReplicaSet": _WORKLOAD,
    "apps/v1 StatefulSet": BuiltinRules(
        status=True,
        generation=True,
        fixed=("spec.selector", "spec.serviceName", "spec.podManagementPolicy", "spec.volumeClaimTemplates"),
        check=_workload_causes,
    ),
    "batch/v1 Job": BuiltinRules(
        status=True,
        generation=True,
        fixed=tuple(f"spec.{name}" for name in (*_JOB_FIXED, "managedBy", "successPolicy")),
        set_up=_job,
        check=_job_causes,
    ),
    "coordination.k8s.io/v1 Lease": _PLAIN,
    "discovery.k8s.io/v1 EndpointSlice": BuiltinRules(fixed=("addressType",)),
    "events.k8s.io/v1 Event": _PLAIN,
    "policy/v1 PodDisruptionBudget": _COUNTED,
    "rbac.authorization.k8s.io/v1 ClusterRole": _PLAIN,
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": _BINDING,
    "rbac.authorization.k8s.io/v1 Role": _PLAIN,
    "rbac.authorization.k8s.io/v1 RoleBinding": _BINDING,
    "storage.k8s.io/v1 StorageClass": BuiltinRules(fixed=_CLASS_FIXED),
    "v1 ConfigMap": _PLAIN,
    "v1 Event": _PLAIN,
    "v1 Namespace": BuiltinRules(status=True, set_up=_namespace),
    "v1 Node": BuiltinRules(status=True, keeps_status=True),
    "v1 PersistentVolumeClaim": BuiltinRules(
        status=True,
        fixed=tuple(f"spec.{name}" for name in ("accessModes", "selector", "volumeMode", "storageClassName")),
        set_up=_claim,
    ),
    "v1 Pod": BuiltinRules(
        status=True,
        generation=True,
        set_up=_pod,
        check=_bare_pod_causes,
        status_ignores=(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
    ),
    "v1 Secret": BuiltinRules(fixed=("type",)),
    "v1 Service": BuiltinRules(status=True, fixed=("spec.clusterIP",), set_up=_service, check=_service_causes),
    "v1 ServiceAccount": _PLAIN,
}
"""Every built-in kind that is served; a test compares it with `schemas/kubernetes`."""
