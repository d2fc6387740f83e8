"""TLS, credentials and permissions on a real API server."""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from controlplane.cluster import ControlPlane

from cluster_door.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    NODE,
    UPGRADE_PLAN,
    VIRTUAL_MACHINE,
    config_map,
    ref,
)
from cluster_door.real import access_by, client_by, wait_until
from reconcile.cluster import errors
from reconcile.cluster.kubeconfig import find_access
from reconcile.cluster.protocol import Cluster, Permission, Selection, permission
from renderer.model.ref import Kind

ROLE = Kind(api_version="rbac.authorization.k8s.io/v1", kind="Role", plural="roles", namespaced=True)
ROLE_BINDING = Kind(api_version=ROLE.api_version, kind="RoleBinding", plural="rolebindings", namespaced=True)


def test_missing_permission_comes_as_the_rule_that_grants_it(
    control_plane: ControlPlane, client: Cluster, namespace: str
) -> None:
    limited = client_by(access_by(control_plane.service_account_kubeconfig(namespace, "limited")))
    rules: list[Mapping[str, Any]] = []
    for expected in (
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"], "resourceNames": ["a"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    ):
        missing = _missing(limited, namespace)
        assert (missing.namespace, missing.rule()) == (namespace, expected)
        rules.append(missing.rule())
        _grant(client, namespace, rules)
        wait_until(functools.partial(_allowed, limited, missing))
    assert limited.apply(CONFIG_MAP, config_map("a", namespace)).body["metadata"]["uid"]


def _missing(limited: Cluster, namespace: str) -> Permission:
    with pytest.raises(errors.Forbidden) as caught:
        limited.apply(CONFIG_MAP, config_map("a", namespace))
    return caught.value.permission


def _allowed(limited: Cluster, asked: Permission) -> bool:
    return limited.review(asked).allowed


def _grant(client: Cluster, namespace: str, rules: list[Mapping[str, Any]]) -> None:
    metadata = {"name": "limited", "namespace": namespace}
    subject = {"kind": "ServiceAccount", "name": "limited", "namespace": namespace}
    role_ref = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "limited"}
    head = {"apiVersion": ROLE.api_version, "metadata": metadata}
    client.apply(ROLE, {**head, "kind": "Role", "rules": rules})
    client.apply(ROLE_BINDING, {**head, "kind": "RoleBinding", "roleRef": role_ref, "subjects": [subject]})


@pytest.mark.parametrize(
    ("ask", "missing"),
    [
        (
            lambda c: c.list(Selection(kind=DEPLOYMENT)),
            permission("list", DEPLOYMENT),
        ),
        (
            lambda c: c.watch(Selection(kind=DEPLOYMENT), resource_version="1", window=1),
            permission("watch", DEPLOYMENT),
        ),
        (
            lambda c: c.patch(UPGRADE_PLAN, ref(UPGRADE_PLAN, "p"), {"status": {}}, subresource="status"),
            permission("patch", UPGRADE_PLAN, subresource="status", name="p"),
        ),
        (
            lambda c: c.read(NODE, ref(NODE, "n"), "proxy/stats/summary"),
            permission("get", NODE, subresource="proxy", name="n"),
        ),
        (
            lambda c: c.put(VIRTUAL_MACHINE, ref(VIRTUAL_MACHINE, "vm", "default"), "start"),
            permission("update", VIRTUAL_MACHINE, subresource="start", namespace="default", name="vm"),
        ),
        (
            lambda c: c.delete(CONFIG_MAP, ref(CONFIG_MAP, "a", "default")),
            permission("delete", CONFIG_MAP, namespace="default", name="a"),
        ),
    ],
    ids=["list", "watch", "status", "node proxy", "VM start", "delete"],
)
def test_our_permission_is_the_one_that_the_authorizer_misses(
    control_plane: ControlPlane, client: Cluster, ask: Callable[[Cluster], object], missing: Permission
) -> None:
    limited = client_by(access_by(control_plane.service_account_kubeconfig("default", "nobody")))
    with pytest.raises(errors.Forbidden) as caught:
        ask(limited)
    assert caught.value.permission == missing
    assert (limited.review(missing).allowed, client.review(missing).allowed) == (False, True)


@pytest.mark.parametrize("user", [{"token": "wrong"}, {}], ids=["wrong token", "no credentials"])
def test_bad_credentials_are_unauthorized(control_plane: ControlPlane, user: Mapping[str, str]) -> None:
    access = replace(access_by(control_plane.kubeconfig), user=user)
    with pytest.raises(errors.Unauthorized):
        client_by(access).get(CONFIG_MAP, ref(CONFIG_MAP, "a", "default"))


def test_certificate_must_fit(control_plane: ControlPlane) -> None:
    access = access_by(control_plane.kubeconfig)
    for cluster in ({"server": access.server}, {**access.cluster, "tls-server-name": "other.example"}):
        with pytest.raises(errors.Untrusted, match="CERTIFICATE_VERIFY_FAILED"):
            client_by(replace(access, cluster=cluster)).get(CONFIG_MAP, ref(CONFIG_MAP, "a", "default"))
    unchecked = {"server": access.server, "insecure-skip-tls-verify": True}
    with pytest.raises(errors.NotFound):
        client_by(replace(access, cluster=unchecked)).get(CONFIG_MAP, ref(CONFIG_MAP, "absent", "default"))


def test_impersonation_of_the_kubeconfig_is_honoured(control_plane: ControlPlane) -> None:
    access = access_by(control_plane.kubeconfig)
    client = client_by(replace(access, user={**access.user, "as": "joe", "as-groups": ["system:masters"]}))
    with pytest.raises(errors.NotFound):
        client.get(CONFIG_MAP, ref(CONFIG_MAP, "absent", "default"))
    client = client_by(replace(access, user={**access.user, "as": "joe"}))
    with pytest.raises(errors.Forbidden, match='User "joe"'):
        client.get(CONFIG_MAP, ref(CONFIG_MAP, "absent", "default"))


def test_pod_is_served_by_its_service_account(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> None:
    token = control_plane.service_account_token(namespace, "own")
    authority = access_by(control_plane.kubeconfig).cluster["certificate-authority-data"]
    (tmp_path / "ca.crt").write_bytes(base64.b64decode(authority))
    (tmp_path / "token").write_text(f"{token}\n", encoding="utf-8")
    host, port = urlsplit(control_plane.server).netloc.split(":")
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}
    client = client_by(find_access(environ, service_account=tmp_path))
    with pytest.raises(errors.Forbidden, match=f'User "system:serviceaccount:{namespace}:own"'):
        client.list(Selection(kind=NODE))
