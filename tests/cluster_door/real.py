"""Clients for the real control plane, and what tests on it share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from controlplane import waiting

from cluster_door.kinds import NAMESPACE
from reconcile.cluster.client import connect
from reconcile.cluster.kubeconfig import ClusterAccess, find_access
from reconcile.cluster.protocol import Cluster


def access_by(kubeconfig: Path) -> ClusterAccess:
    return find_access({}, kubeconfig=str(kubeconfig))


def client_by(access: ClusterAccess) -> Cluster:
    return connect(access, environ={}, now=lambda: datetime.now(UTC))


def create_namespace(client: Cluster, name: str) -> None:
    client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


def deployment(name: str, namespace: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    containers = [{"name": "main", "image": "example/nothing:1"}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def wait_until(look: Callable[[], bool]) -> None:
    """For what the server does a moment later: its authorizer, its caches, its audit log."""
    waiting.until("what the server does a moment later", look)
