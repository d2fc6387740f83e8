"""The rules of the API server for built-in kinds beyond their schema, as data: status, generation, fixed fields,
set-up.

Source: k8s.io/kubernetes 1.35, pkg/registry/*/strategy.go and pkg/apis/*/validation. Rules of kinds that the product
does not write are only there where the loop or an actor can meet them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.cluster.errors import StatusCause
from reconcile.simulator.apiserver import builtin_causes, builtin_setup
from renderer.model.ref import Body

SetUp = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImmutableField:
    """A field that may not change, and the server's words for it. `cause` is the field that it blames.

    `part` picks out of the value what may not change.
    """

    path: str
    cause: str = ""
    message: str = "field is immutable"
    forbidden: bool = False
    part: Callable[[Any], Any] = lambda value: value

    def blame(self, found: Any) -> StatusCause:
        text = f"Forbidden: {self.message}" if self.forbidden else f"Invalid value: {found!r}: {self.message}"
        reason = f"FieldValue{'Forbidden' if self.forbidden else 'Invalid'}"
        return StatusCause(field=self.cause or self.path, message=text, reason=reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltinRules:
    """One kind's row.

    `counted`: the fields whose changes generation counts. `keeps_status`: a create may bring a status. `set_up`
    prepares a new object; `carry_over` gives a changed one what it takes over from the old one.
    """

    status: bool = False
    counted: tuple[str, ...] = ()
    keeps_status: bool = False
    fixed: tuple[ImmutableField, ...] = ()
    set_up: SetUp | None = None
    carry_over: Callable[[dict[str, Any], Body], dict[str, Any]] | None = None
    check: Callable[[Body], Iterator[StatusCause]] | None = None
    status_ignores: tuple[tuple[str, ...], ...] = (("spec",),)


def fixed_causes(rules: BuiltinRules, old: Body, new: Body) -> Iterator[StatusCause]:
    for fixed in rules.fixed:
        found = at(new, fixed.path)
        if fixed.part(found) != fixed.part(at(old, fixed.path)):
            yield fixed.blame(found)
    yield from _sealed(old, new)


def _sealed(old: Body, new: Body) -> Iterator[StatusCause]:
    """An immutable ConfigMap or Secret can change neither its contents nor `immutable`."""
    if old.get("immutable") is True and old["apiVersion"] == "v1":
        for name in ("immutable", "data", "binaryData"):
            if old.get(name) != new.get(name):
                text = "field is immutable when `immutable` is set"
                yield ImmutableField(path=name, message=text, forbidden=True).blame(new.get(name))


def at(body: Body, path: str) -> Any:
    value: Any = body
    for part in path.split("."):
        value = (value or {}).get(part)
    return value


_JOB_FIXED = ("completions", "selector", "template", "completionMode", "podFailurePolicy", "backoffLimitPerIndex")
_CLASS_FIXED = tuple(
    ImmutableField(path=name, message=f"updates to {name} are forbidden.", forbidden=True)
    for name in ("provisioner", "parameters", "reclaimPolicy")
)
_SET_FIXED = ("selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates")
_CLAIM_FIXED = ("accessModes", "selector", "volumeMode", "storageClassName", "volumeName")
_POD_TEXT = "pod updates may not change fields other than the containers' images and a few others"
_SPEC = ("spec",)
_SELECTOR = (ImmutableField(path="spec.selector"),)
_WORKLOAD = BuiltinRules(status=True, counted=_SPEC, fixed=_SELECTOR, check=builtin_causes.workload_causes)
_PLAIN = BuiltinRules()
_COUNTED = BuiltinRules(status=True, counted=_SPEC)
_BINDING = BuiltinRules(fixed=(ImmutableField(path="roleRef", message="cannot change roleRef"),))


def _fixed(names: Iterable[str], prefix: str = "spec.") -> tuple[ImmutableField, ...]:
    return tuple(ImmutableField(path=f"{prefix}{name}") for name in names)


def _pod_fixed(spec: Mapping[str, Any]) -> Any:
    """A pod's spec without what may change: images, tolerations, its deadline."""
    kept = {name: value for name, value in spec.items() if name not in ("tolerations", "activeDeadlineSeconds")}
    for group in ("containers", "initContainers"):
        kept[group] = [{**container, "image": ""} for container in spec.get(group) or ()]
    return kept


def _fixed_spec(names: Iterable[str], message: str) -> tuple[ImmutableField, ...]:
    """For some kinds the server blames the whole spec."""
    return tuple(ImmutableField(path=f"spec.{name}", cause="spec", message=message, forbidden=True) for name in names)


RULES: Mapping[str, BuiltinRules] = {
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicy": _COUNTED,
    "admissionregistration.k8s.io/v1 ValidatingAdmissionPolicyBinding": BuiltinRules(counted=_SPEC),
    "apiextensions.k8s.io/v1 CustomResourceDefinition": BuiltinRules(
        status=True,
        counted=_SPEC,
        fixed=_fixed(("group", "scope", "names.plural", "names.kind")),
        set_up=builtin_setup.definition,
        status_ignores=(("metadata",), ("spec",)),
    ),
    "apps/v1 DaemonSet": BuiltinRules(
        status=True,
        counted=_SPEC,
        fixed=_SELECTOR,
        check=builtin_causes.workload_causes,
        carry_over=builtin_setup.template_counted,
    ),
    "apps/v1 Deployment": BuiltinRules(
        status=True,
        counted=_SPEC,
        fixed=_SELECTOR,
        check=builtin_causes.workload_causes,
        status_ignores=(("spec",), ("metadata", "labels")),
    ),
    "apps/v1 ReplicaSet": _WORKLOAD,
    "apps/v1 StatefulSet": BuiltinRules(
        status=True,
        counted=_SPEC,
        fixed=_fixed_spec(_SET_FIXED, "updates to statefulset spec for fields other than a few are forbidden"),
        check=builtin_causes.workload_causes,
    ),
    "batch/v1 Job": BuiltinRules(
        status=True,
        counted=_SPEC,
        fixed=_fixed((*_JOB_FIXED, "managedBy", "successPolicy")),
        set_up=builtin_setup.job,
        check=builtin_causes.job_causes,
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
    "storage.k8s.io/v1 StorageClass": BuiltinRules(fixed=(*_CLASS_FIXED, ImmutableField(path="volumeBindingMode"))),
    "v1 ConfigMap": BuiltinRules(check=builtin_causes.config_map_causes),
    "v1 Event": _PLAIN,
    "v1 Namespace": BuiltinRules(status=True, set_up=builtin_setup.namespace),
    "v1 Node": BuiltinRules(status=True, keeps_status=True, set_up=builtin_setup.node),
    "v1 PersistentVolumeClaim": BuiltinRules(
        status=True,
        fixed=_fixed_spec(_CLAIM_FIXED, "spec is immutable after creation except resources.requests"),
        set_up=builtin_setup.claim,
    ),
    "v1 Pod": BuiltinRules(
        status=True,
        counted=_SPEC,
        fixed=(ImmutableField(path="spec", message=_POD_TEXT, forbidden=True, part=_pod_fixed),),
        set_up=builtin_setup.pod,
        check=builtin_causes.bare_pod_causes,
        status_ignores=(("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")),
    ),
    "v1 Secret": BuiltinRules(fixed=_fixed(("type",), ""), check=builtin_causes.config_map_causes),
    "v1 Service": BuiltinRules(
        status=True,
        fixed=(ImmutableField(path="spec.clusterIP", cause="spec.clusterIPs[0]", message="may not change once set"),),
        set_up=builtin_setup.service,
        carry_over=builtin_setup.kept_address,
        check=builtin_causes.service_causes,
    ),
    "v1 ServiceAccount": _PLAIN,
}
"""Every built-in kind that is served; a test compares it with `schemas/kubernetes`."""
