"""Fixtures of the tests on the real control plane."""

from __future__ import annotations

import pytest
from controlplane.cluster import ControlPlane

from cluster_door.real import access_by, client_by, create_namespace
from reconcile.cluster.protocol import Cluster


@pytest.fixture
def client(control_plane: ControlPlane) -> Cluster:
    return client_by(access_by(control_plane.kubeconfig))


@pytest.fixture
def namespace(client: Cluster, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = f"door-{request.node.originalname}".replace("_", "-")[:63].strip("-")
    create_namespace(client, name)
    return name
