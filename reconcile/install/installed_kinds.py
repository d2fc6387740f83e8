"""The kinds that an installation may have, and how its objects are known."""

from __future__ import annotations

from collections.abc import Iterator

from reconcile.cluster.errors import NoSuchKind, NotFound
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.objects import label
from renderer.model.ref import Body, Kind, Ref

PART_OF = "app.kubernetes.io/part-of"
OURS = "upgradeplan"
NAME = "app.kubernetes.io/name"
DEFINITION = "CustomResourceDefinition"
CLAIM = "PersistentVolumeClaim"
KEPT = (DEFINITION, CLAIM)
"""Kinds of objects that stay when an installation goes, or has them no longer: they hold plans, and logs."""

_RBAC, _ADMISSION = "rbac.authorization.k8s.io/v1", "admissionregistration.k8s.io/v1"
_ROWS = (
    ("apiextensions.k8s.io/v1", DEFINITION, "customresourcedefinitions", False),
    ("v1", "ServiceAccount", "serviceaccounts", True),
    ("v1", "Secret", "secrets", True),
    ("v1", "ConfigMap", "configmaps", True),
    (_RBAC, "ClusterRole", "clusterroles", False),
    (_RBAC, "ClusterRoleBinding", "clusterrolebindings", False),
    (_RBAC, "Role", "roles", True),
    (_RBAC, "RoleBinding", "rolebindings", True),
    ("v1", "Service", "services", True),
    ("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", True),
    ("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", True),
    ("v1", CLAIM, "persistentvolumeclaims", True),
    ("apps/v1", "Deployment", "deployments", True),
    (_ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", False),
    (_ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", False),
    (_ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", False),
    (_ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", False),
    ("monitoring.coreos.com/v1", "ServiceMonitor", "servicemonitors", True),
    ("monitoring.coreos.com/v1", "PrometheusRule", "prometheusrules", True),
)
KINDS = {
    (api_version, kind): Kind(api_version=api_version, kind=kind, plural=plural, namespaced=namespaced)
    for api_version, kind, plural, namespaced in _ROWS
}
"""In the order of creation."""


def kind_of(ref: Ref) -> Kind:
    return KINDS[ref.api_version, ref.kind]


def read(cluster: Cluster, ref: Ref, kind: Kind) -> Body | None:
    """The live object; None if there is none."""
    try:
        return cluster.get(kind, ref).body
    except (NotFound, NoSuchKind):
        return None


def installed(cluster: Cluster, name: str) -> Iterator[Body]:
    """Every object of an installation of this name, in the order of creation."""
    for kind in KINDS.values():
        try:
            yield from cluster.list(Selection(kind=kind, labels=f"{PART_OF}={OURS},{NAME}={name}")).items
        except NoSuchKind:
            continue


def is_ours(live: Body) -> bool:
    return label(live, PART_OF) == OURS
