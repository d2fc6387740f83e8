"""Pods on a real API server: bound by a Binding as a scheduler does, deleted at once as a kubelet does."""

from __future__ import annotations

from contextlib import suppress

from controlplane.api import ApiError
from controlplane.cluster import ControlPlane

from reconcile.cluster.protocol import Cluster
from reconcile.simulator.actors.actor_client import POD, ActorClient
from renderer.model.ref import Body, Kind, ref_of

_BINDING = Kind(api_version="v1", kind="Binding", plural="bindings", namespaced=True)


class RealPods:
    """A `PodHandler`."""

    def __init__(self, plane: ControlPlane, cluster: Cluster) -> None:
        self._plane = plane
        self._cluster = cluster

    def bind(self, client: ActorClient, pod: Body, node: str) -> None:
        ref = ref_of(pod)
        metadata = {"name": ref.name, "namespace": ref.namespace}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        self._cluster.create(_BINDING, {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target})
        client.wrote(POD)

    def end(self, client: ActorClient, pod: Body) -> None:
        ref = ref_of(pod)
        path = f"/api/v1/namespaces/{ref.namespace}/pods/{ref.name}"
        with suppress(ApiError):  # it is gone already
            self._plane.api.send("DELETE", path, {"gracePeriodSeconds": 0})
        client.wrote(POD)
