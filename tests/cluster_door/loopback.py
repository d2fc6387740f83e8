"""Clients for the server that behaves badly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from cluster_door.server import BadServer, Step, serving
from reconcile.cluster.client import connect
from reconcile.cluster.kubeconfig import ClusterAccess
from reconcile.cluster.protocol import Cluster

NOW = datetime(2026, 11, 28, 12, 0, tzinfo=UTC)


def access_to(url: str, user: Mapping[str, Any] | None = None) -> ClusterAccess:
    return ClusterAccess(context="test", server=url, cluster={"server": url}, user=user or {"token": "secret"})


def client_to(url: str) -> Cluster:
    return connect(access_to(url), environ={}, now=lambda: NOW)


@contextmanager
def client_of(*script: Step) -> Iterator[tuple[Cluster, BadServer]]:
    with serving(*script) as server:
        yield client_to(server.url), server
