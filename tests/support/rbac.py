"""An authorizer for the embedded cluster: what Roles, ClusterRoles and their bindings grant to a service account.

Source: k8s.io/component-helpers, package auth/rbac/validation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconcile.cluster.protocol import AccessReview, Permission
from renderer.model.ref import Body

READ_IN_TROUBLE = frozenset(
    {
        "cluster: policy/poddisruptionbudgets list",
        "cluster: kubevirt.io/virtualmachineinstancemigrations list",
        "harvester-system: cdi.kubevirt.io/datavolumes list",
        "harvester-system: apps/daemonsets list",
        "longhorn-system: longhorn.io/engines list",
    }
)
"""The permissions that an upgrade uses only where it waits too long: `place: group/resource verb`."""

_REVIEW = "selfsubjectaccessreviews"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grant:
    """A rule, where it holds (all namespaces if empty), and by what it was granted."""

    rule: Mapping[str, Any]
    namespace: str
    by: str


class Rbac:
    """What Roles, ClusterRoles and their bindings, among any objects, grant to a service account."""

    def __init__(self, objects: Iterable[Body], *, namespace: str, account: str) -> None:
        known = tuple(objects)
        roles = {_role_key(body): body for body in known if body["kind"] in ("Role", "ClusterRole")}
        subject = {"kind": "ServiceAccount", "namespace": namespace, "name": account}
        self.user = f"system:serviceaccount:{namespace}:{account}"
        self._grants = tuple(grant for body in known if _binds(body, subject) for grant in _granted(body, roles))
        self._known: dict[Permission, AccessReview] = {}

    def verdict(self, permission: Permission) -> AccessReview:
        if permission not in self._known:
            self._known[permission] = self._verdict(permission)
        return self._known[permission]

    @property
    def asked(self) -> Mapping[Permission, AccessReview]:
        """All that was asked for so far, with the answers."""
        return self._known

    def _verdict(self, permission: Permission) -> AccessReview:
        if permission.resource == _REVIEW:
            return AccessReview(allowed=True)
        for grant in self._grants:
            if grant.namespace in ("", permission.namespace) and _covers(grant.rule, permission):
                return AccessReview(allowed=True, reason=f"RBAC: allowed by {grant.by}")
        return AccessReview(allowed=False)


def _role_key(body: Body) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace") or "", body["metadata"]["name"]


def _binds(body: Body, subject: Mapping[str, str]) -> bool:
    return body["kind"] in ("RoleBinding", "ClusterRoleBinding") and any(
        all(item.get(name) == value for name, value in subject.items()) for item in body.get("subjects") or ()
    )


def _granted(binding: Body, roles: Mapping[tuple[str, str, str], Body]) -> Iterator[_Grant]:
    namespace = binding["metadata"].get("namespace") or ""
    role = binding["roleRef"]
    found = roles.get((role["kind"], namespace if role["kind"] == "Role" else "", role["name"]))
    by = f"{binding['kind']} {binding['metadata']['name']!r} of {role['kind']} {role['name']!r}"
    for rule in (found or {}).get("rules") or ():
        yield _Grant(rule=rule, namespace=namespace, by=by)


def _covers(rule: Mapping[str, Any], permission: Permission) -> bool:
    names = rule.get("resourceNames") or ()
    return (
        _in(permission.verb, rule.get("verbs"))
        and _in(permission.group, rule.get("apiGroups"))
        and _covers_resource(rule.get("resources") or (), permission.resource)
        and (not names or permission.name in names)
    )


def _in(word: str, words: Iterable[str] | None) -> bool:
    found = tuple(words or ())
    return "*" in found or word in found


def _covers_resource(resources: Iterable[str], expected: str) -> bool:
    """`*/scale` grants a subresource of every resource; `pods` does not grant `pods/log`."""
    subresource = expected.partition("/")[2]
    return any(found in ("*", expected) or (subresource and found == f"*/{subresource}") for found in resources)
