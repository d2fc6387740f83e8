"""What the API server does to built-in kinds beside their schema, as data: status, generation, fixed fields, set-up.

Source: k8s.io/kubernetes 1.35, pkg/registry/*/strategy.go and pkg/apis/*/validation. Rules of kinds that the product
does not write are only there where the loop or an actor can meet them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.cluster.errors import Cause
from reconcile.rehearsal.selectors import selects
from renderer.model.ref import Body

_KEY = re.compile(r"[-._a-zA-Z0-9]+")
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"

SetUp = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A field that may not change, and the server's words for it. `cause` is the field that it blames.

    `part` picks out of the value what may not change.
    """

    path: str
    cause: str = ""
    message: str = "field is immutable"
    forbidden: bool = False
    part: Callable[[Any], Any] = lambda value: value

    def blame(self, found: Any) -> Cause:
        text = f"Forbidden: {self.message}" if self.forbidden else f"Invalid value: {found!r}: {self.message}"
        reason = f"FieldValue{'Forbidden' if self.forbidden else 'Invalid'}"
        return Cause(field=self.cause or self.path, message=text, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinRules:
    """One kind's row.

    `counted`: the fields whose changes generation counts. `keeps_status`: a create may bring a status. `set_up`
    prepares a new object; `carry_over` gives a changed one what it takes over from the old one.
    """

    status: bool = False
    counted: tuple[str, ...] = ()
    keeps_status: bool = False
    fixed: tuple[Fixed, ...] = ()
    set_up: SetUp | None = None
    carry_over: Callable[[dict[str, Any], Body], dict[str, Any]] | None = None
    check: Callable[[Body], Iterator[Cause]] | None = None
    status_ignores: tuple[tuple[str, ...], ...] = (("spec",),)


def fixed_causes(rules: BuiltinRules, old: Body, new: Body) -> Iterator[Cause]:
    for fixed in rules.fixed:
        found = at(new, fixed.path)
        if fixed.part(found) != fixed.part(at(old, fixed.path)):
            yield fixed.blame(found)
    yield from _sealed(old, new)


def _sealed(old: Body, new: Body) -> Iterator[Cause]:
    """A ConfigMap or Secret that says so can change neither its contents nor its mind."""
    if old.get("immutable") is True and old["apiVersion"] == "v1":
        for name in ("immutable", "data", "binaryData"):
            if old.get(name) != new.get(name):
                text = "field is immutable when `immutable` is set"
                yield Fixed(path=name, message=text, forbidden=True).blame(new.get(name))


def at(body: Body, path: str) -> Any:
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


def _kept_address(new: dict[str, Any], old: Body) -> dict[str, Any]:
    """A Service that does not name its addresses keeps those that it was given."""
    given = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")
    spec = {name: old["spec"][name] for name in given if name in old["spec"]} | new["spec"]
    return {**new, "spec": spec}


def _template_counted(new: dict[str, Any], old: Body) -> dict[str, Any]:
    """A DaemonSet counts changes of its template in an annotation."""
    before = (old["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION, "1")
    number = int(before) + (new["spec"]["template"] != old["spec"]["template"])
    annotations = {**(new["metadata"].get("annotations") or {}), TEMPLATE_GENERATION: str(number)}
    return {**new, "metadata": {**new["metadata"], "annotations": annotations}}


def _node(body: dict[str, Any]) -> dict[str, Any]:
    """Admission keeps pods away until the kubelet has said that it is ready."""
    taint = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    taints = body["spec"].get("taints") or []
    return body if taint in taints else {**body, "spec": {**body["spec"], "taints": [*taints, taint]}}


def _namespace(body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def _claim(body: dict[str, Any]) -> dict[str, Any]:
    """Admission protects a claim that a pod uses."""
    finalizers = [*(body["metadata"].get("finalizers") or ()), "kubernetes.io/pvc-protection"]
    metadata = {**body["metadata"], "finalizers": list(dict.fromkeys(finalizers))}
    return {**body, "metadata": metadata, "status": {"phase": "Pending"}}


def _pod(body: dict[str, Any]) -> dict[str, Any]:
    """What admission adds, but for the volume with the service account's token."""
    spec = {"serviceAccountName": "default", "serviceAccount": "default", "priority": 0, **body["spec"]}
    spec = {"preemptionPolicy": "PreemptLowerPriority", **spec, "tolerations": _tolerations(spec)}
    return {**body, "spec": spec, "status": {"phase": "Pending", "qosClass": "BestEffort"}}


def _tolerations(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A pod stays for five minutes on a node that is in trouble, unless it says otherwise."""
    given = list(spec.get("tolerations") or ())
    tolerated = {item.get("key") for item in given if item.get("effect") in (None, "NoExecute")}
    keys = () if None in tolerated else ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for key in keys
        if key not in tolerated
    ]
    return given + added


def _definition(body: dict[str, Any]) -> dict[str, Any]:
    stored = [version["name"] for version in body["spec"]["versions"] if version["storage"]]
    return {**body, "status": {**body["status"], "storedVersions": stored}}


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
        yield _required("spec.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')
    yield from _selection_causes(body)


def _workload_causes(body: Body) -> Iterator[Cause]:
    template = body["spec"]["template"]
    yield from _pod_causes("spec.template.spec", template["spec"])
    if template["spec"]["restartPolicy"] != "Always":
        yield _unsupported("spec.template.spec.restartPolicy", template["spec"]["restartPolicy"], '"Always"')
    if not body["spec"].get("selector"):
        yield _required("spec.selector", "")
    yield from _selection_causes(body)


def _selection_causes(body: Body) -> Iterator[Cause]:
    selector = body["spec"].get("selector")
    labels = (body["spec"]["template"].get("metadata") or {}).get("labels") or {}
    if selector is None or not selects(selector, labels):
        message = f"Invalid value: {labels!r}: `selector` does not match template `labels`"
        yield Cause(field="spec.template.metadata.labels", message=message, reason="FieldValueInvalid")


def _config_map_causes(body: Body) -> Iterator[Cause]:
    contents: Mapping[str, Any] = body.get("data") or {}
    others: Mapping[str, Any] = body.get("binaryData") or {}
    for name, keys in (("data", contents), ("binaryData", others)):
        for key in keys:
            if not _KEY.fullmatch(key) or len(key) > 253:
                message = f"Invalid value: {key!r}: a valid config key must consist of letters, digits, '-', '_' or '.'"
                yield Cause(field=f"{name}[{key}]", message=message, reason="FieldValueInvalid")
    for key in sorted(set(contents) & set(others)):
        message = f"Invalid value: {key!r}: duplicate of key present in binaryData"
        yield Cause(field=f"data[{key}]", message=message, reason="FieldValueInvalid")


def _bare_pod_causes(body: Body) -> Iterator[Cause]:
    return _pod_causes("spec", body["spec"])


def _service_causes(body: Body) -> Iterator[Cause]:
    spec = body["spec"]
    if not spec.get("ports") and spec["type"] != "ExternalName" and spec.get("clusterIP") != "None":
        yield _required("spec.ports", "")


_JOB_FIXED = ("completions", "selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex")
_CLASS_FIXED = tuple(
    Fixed(path=name, message=f"updates to {name} are forbidden.", forbidden=True)
    for name in ("provisioner", "parameters", "reclaimPolicy")
)
_SET_FIXED = ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates")
_CLAIM_FIXED = ("accessModes", "selector", "volumeMode", "storageClassName", "volumeName")
_POD_TEXT = "pod updates may not change fields other than the containers' images and a few others"
_SPEC = ("spec",)
_SELECTOR = (Fixed(path="spec.selector"),)
_WORKLOAD = BuiltinRules(status=True, counted=_SPEC, fixed=_SELECTOR, check=_workload_causes)
_PLAIN = BuiltinRules()
_COUNTED = BuiltinRules(status=True, counted=_SPEC)
_BINDING = BuiltinRules(fixed=(Fixed(path="roleRef", message="cannot change roleRef"),))


def _fixed(names: Iterable[str], prefix: str = "spec.") -> tuple[Fixed, ...]:
    return tuple(Fixed(path=f"{prefix}{name}") for name in names)


def _pod_fixed(spec: Mapping[str, Any]) -> Any:
    """A pod's spec without what may change: images, tolerations, its deadline."""
    kept = {name: value for name, value in spec.items() if name not in ("tolerations", "activeDeadlineSeconds")}
    for group in ("containers", "initContainers"):
        kept[group] = [{**container, "image": ""} for container in spec.get(group) or ()]
    return kept


def _fixed_spec(names: Iterable[str], message: str) -> tuple[Fixed, ...]:
    """Of some kinds the server blames the whole spec."""
    return tuple(Fixed(path=f"spec.{name}", cause="spec", message=message, forbidden=True) for name in names)


RULES: Mapping[str, BuiltinRules] = {
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": _COUNTED,
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": BuiltinRules(counted=_SPEC),
    "apiextensions.k8s.io/v1 CustomResourceDefinition": BuiltinRules(
        status=True,
        counted=_SPEC,
        fixed=_fixed(("group", "scope", "names.plural", "names.kind")),
        set_up=_definition,
        status_ignores=(("metadata",), ("spec",)),
    ),
    "apps/v1 DaemonSet": BuiltinRules(
        status=True, counted=_SPEC, fixed=_SELECTOR, check=_workload_causes, carry_over=_template_counted
    ),
    "apps/v1 Deployment": BuiltinRules(
        status=True,
        counted=_SPEC,
        fixed=_SELECTOR,
        check=_workload_causes,
        status_ignores=(("spec",), ("metadata", "labels")),
    ),
    "apps/v1 ReplicaSet": _WORKLOAD,
    "apps/v1 StatefulSet": BuiltinRules(
        status=True,
        counted=_SPEC,
        fixed=_fixed_spec(_SET_FIXED, "updates to statefulset spec for fields other than a few are forbidden"),
        check=_workload_causes,
    ),
    "batch/v1 Job": BuiltinRules(
        status=True,
        counted=_SPEC,
        fixed=_fixed((*_JOB_FIXED, "managedBy", "successPolicy")),
        set_up=_job,
        check=_job_causes,
    ),
    "coordination.k8s.io/v1 Lease": _PLAIN,
    "discovery.k8s.io/v1 EndpointSlice": BuiltinRules(
        counted=("addressType", "endpoints", "ports", "metadata.labels"), fixed=_fixed(("addressType",), "")
    ),
    "events.k8s.io/v1 Event": _PLAIN,
    "policy/v1 PodDisruptionBudget": _COUNTED,
    "rbac.authorization.k8s.io/v1 ClusterRole": _PLAIN,
    "rbac.authorization.k8s.io/v1 ClusterRoleBinding": _BINDING,
    "rbac.authorization.k8s.io/v1 Role": _PLAIN,
    "rbac.authorization.k8s.io/v1 RoleBinding": _BINDING,
    "storage.k8s.io/v1 StorageClass": BuiltinRules(fixed=(*_CLASS_FIXED, Fixed(path="volumeBindingMode"))),
    "v1 ConfigMap": BuiltinRules(check=_config_map_causes),
    "v1 Event": _PLAIN,
    "v1 Namespace": BuiltinRules(status=True, set_up=_namespace),
    "v1 Node": BuiltinRules(status=True, keeps_status=True, set_up=_node),
    "v1 PersistentVolumeClaim": BuiltinRules(
        status=True,
        fixed=_fixed_spec(_CLAIM_FIXED, "spec is immutable after creation except resources.requests"),
        set_up=_claim,
    ),
    "v1 Pod": BuiltinRules(
        status=True,
        counted=_SPEC,
        fixed=(Fixed(path="spec", message=_POD_TEXT, forbidden=True, part=_pod_fixed),),
        set_up=_pod,
        check=_bare_pod_causes,
        status_ignores=(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
    ),
    "v1 Secret": BuiltinRules(fixed=_fixed(("type",), ""), check=_config_map_causes),
    "v1 Service": BuiltinRules(
        status=True,
        fixed=(Fixed(path="spec.clusterIP", cause="spec.clusterIPs[0]", message="may not change once set"),),
        set_up=_service,
        carry_over=_kept_address,
        check=_service_causes,
    ),
    "v1 ServiceAccount": _PLAIN,
}
"""Every built-in kind that is served; a test compares it with `schemas/kubernetes`."""
