"""The two stages: where a case runs, and how it waits there for controllers."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Protocol

from controlplane import waiting
from controlplane.cluster import ControlPlane
from support.rbac import Rbac

from conformance.case import definitions
from reconcile.cluster.client import connect
from reconcile.cluster.kubeconfig import find_access
from reconcile.cluster.protocol import Cluster
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster

EMBEDDED = "case-embedded"
START = datetime(2026, 11, 28, 12, 0, 0, tzinfo=UTC)


class Stage(Protocol):
    """A cluster for cases to run on."""

    patience: int
    """The window of a watch in seconds."""

    def begin(self) -> str:
        """A new namespace, on a cluster that serves the cases' own kinds."""
        ...

    def client(self, account: str, namespace: str) -> Cluster:
        """As administrator, or as a service account of the namespace."""
        ...

    def settle(self, what: str, done: Callable[[], bool]) -> None:
        """Lets controllers work until it is done."""
        ...

    def end(self, namespace: str) -> None: ...


class EmbeddedStage:
    """The cluster in process. Time goes on by a second for each step, as between two requests of a person."""

    patience = 0

    def begin(self) -> str:
        self._clock = SimulatedClock(START)
        self._cluster = EmbeddedCluster(self._clock)
        self._cluster.seed((*definitions(), {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": EMBEDDED}}))
        return EMBEDDED

    def client(self, account: str, namespace: str) -> Cluster:
        self._clock.advance(1)
        if not account:
            return self._cluster.client()
        objects = self._cluster.store.everything()
        return self._cluster.client(access=Rbac(objects, namespace=namespace, account=account))

    def settle(self, what: str, done: Callable[[], bool]) -> None:
        self._cluster.collect()
        if not done():
            raise TimeoutError(f"{what}: not so after the collector has worked")

    def end(self, namespace: str) -> None:
        """Nothing outlives the case."""


class RealStage:
    """A real control plane that serves the cases' own kinds. Their namespaces are left to its controllers to delete."""

    patience = 2

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._numbers = itertools.count(1)
        self._admin = self._connect(os.fspath(plane.kubeconfig))

    def begin(self) -> str:
        name = f"case-{os.getpid()}-{next(self._numbers)}"
        self._plane.create_namespace(name)
        return name

    def client(self, account: str, namespace: str) -> Cluster:
        if not account:
            return self._admin
        return self._connect(os.fspath(self._plane.service_account_kubeconfig(namespace, account)))

    def settle(self, what: str, done: Callable[[], bool]) -> None:
        waiting.until(what, done)

    def end(self, namespace: str) -> None:
        self._plane.api.delete(f"/api/v1/namespaces/{namespace}")

    def _connect(self, kubeconfig: str) -> Cluster:
        return connect(find_access({}, kubeconfig=kubeconfig), environ={}, now=lambda: datetime.now(UTC))
