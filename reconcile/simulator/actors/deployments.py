"""Kubernetes' Deployment, ReplicaSet and EndpointSlice controllers: their results. Not used on a real API server.

tests/actors/test_real.py runs the same Deployment on kube-controller-manager 1.35. Not here: surge and unavailability
of a rolling update, which is done at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from reconcile.objects import selects
from reconcile.simulator.actors.actor_client import DEPLOYMENT, ENDPOINT_SLICE, POD, REPLICA_SET, SERVICE
from reconcile.simulator.actors.actor_context import (
    ActorContext,
    conditions,
    has_condition,
    is_deleted,
    labels_of,
    mark,
    owner_reference,
    status_of,
)
from reconcile.simulator.actors.jobs import pod_of
from renderer.model.ref import Body

_HASH = "pod-template-hash"
_SERVICE_NAME = "kubernetes.io/service-name"


class DeploymentController:
    """Works on Deployments that came after the beginning; those of the user's cluster are as they are."""

    def __init__(self, context: ActorContext) -> None:
        self._client = context.client.as_manager("kube-controller-manager")
        self._ours: set[str] = set()
        self._made = 0

    def step(self, now: datetime) -> bool:
        pods: list[Body] = []
        for deployment in self._client.all(DEPLOYMENT):
            if self._is_ours(deployment):
                self._control(deployment, now)
                pods += self._pods_of(deployment)
        for service in self._client.all(SERVICE):
            self._publish(service, pods)
        return self._client.take_changed()

    def next_due(self) -> datetime | None:
        return None

    def _is_ours(self, deployment: Body) -> bool:
        uid = str(deployment["metadata"]["uid"])
        if "observedGeneration" not in status_of(deployment):
            self._ours.add(uid)
        return uid in self._ours and not is_deleted(deployment)

    def _control(self, deployment: Body, now: datetime) -> None:
        expected = _replica_set(deployment)
        metadata = expected["metadata"]
        current = self._client.find(REPLICA_SET, metadata["name"], metadata["namespace"]) or self._client.create(
            expected
        )
        for each in self._client.owned(REPLICA_SET, deployment):
            is_current = each["metadata"]["name"] == current["metadata"]["name"]
            scaled = self._client.patch(
                each, {"spec": {"replicas": deployment["spec"]["replicas"] if is_current else 0}}
            )
            self._replicate(scaled)
        everyone = self._pods_of(deployment)
        self._client.patch_status(deployment, _deployment_status(deployment, self._pods(current), everyone, now))

    def _pods_of(self, deployment: Body) -> list[Body]:
        return [pod for each in self._client.owned(REPLICA_SET, deployment) for pod in self._pods(each)]

    def _pods(self, replica_set: Body) -> list[Body]:
        return [pod for pod in self._client.owned(POD, replica_set) if not is_deleted(pod)]

    def _replicate(self, replica_set: Body) -> None:
        pods, expected = self._pods(replica_set), int(replica_set["spec"]["replicas"])
        for pod in pods[expected:]:
            self._client.delete(pod)
        for _ in range(expected - len(pods)):
            self._made += 1
            self._client.create(pod_of(replica_set, mark(str(replica_set["metadata"]["uid"]), str(self._made))))
        pods = self._pods(replica_set)
        ready = sum(has_condition(pod, "Ready") for pod in pods)
        self._client.patch_status(
            replica_set,
            {
                "observedGeneration": replica_set["metadata"]["generation"],
                "replicas": len(pods),
                "readyReplicas": ready or None,
                "availableReplicas": ready or None,
            },
        )

    def _publish(self, service: Body, ours: Sequence[Body]) -> None:
        """A slice for every Service that selects one of our pods."""
        metadata, selector = service["metadata"], service["spec"].get("selector")
        pods = [
            pod
            for pod in ours
            if pod["metadata"]["namespace"] == metadata["namespace"]
            and selects({"matchLabels": selector} if selector else None, labels_of(pod))
            and status_of(pod).get("podIP")
        ]
        name = f"{metadata['name']}-{mark(str(metadata['uid']))}"
        found = self._client.find(ENDPOINT_SLICE, name, metadata["namespace"])
        if found is None and pods and not is_deleted(service):
            self._client.create(_slice(service, name, pods))
        elif found is not None:
            self._client.patch(found, {"endpoints": [_endpoint(pod) for pod in pods] or None})


def _replica_set(deployment: Body) -> Body:
    """Named after the template, so that another template has another one."""
    spec, metadata = deployment["spec"], deployment["metadata"]
    hash_ = mark(str(metadata["uid"]), json.dumps(spec["template"], sort_keys=True))
    labels = {**(spec["template"]["metadata"].get("labels") or {}), _HASH: hash_}
    template = {**spec["template"], "metadata": {**spec["template"]["metadata"], "labels": labels}}
    selector = {**spec["selector"], "matchLabels": {**(spec["selector"].get("matchLabels") or {}), _HASH: hash_}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{hash_}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(deployment)],
        },
        "spec": {"replicas": spec["replicas"], "selector": selector, "template": template},
    }


def _deployment_status(
    deployment: Body, current: Sequence[Body], everyone: Sequence[Body], now: datetime
) -> dict[str, Any]:
    ready = sum(has_condition(pod, "Ready") for pod in everyone)
    enough = ready >= deployment["spec"]["replicas"]
    available = {
        "type": "Available",
        "status": "True" if enough else "False",
        "reason": "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable",
        "message": f"Deployment {'has' if enough else 'does not have'} minimum availability.",
    }
    return {
        "observedGeneration": deployment["metadata"]["generation"],
        "replicas": len(everyone) or None,
        "updatedReplicas": len(current) or None,
        "readyReplicas": ready or None,
        "availableReplicas": ready or None,
        "unavailableReplicas": max(0, deployment["spec"]["replicas"] - ready) or None,
        "conditions": conditions(deployment, now, available),
    }


def _slice(service: Body, name: str, pods: Sequence[Body]) -> Body:
    metadata = service["metadata"]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": {**labels_of(service), _SERVICE_NAME: metadata["name"]},
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": "IPv4",
        "endpoints": [_endpoint(pod) for pod in pods],
        "ports": [
            {"name": port.get("name") or "", "port": port["port"], "protocol": port["protocol"]}
            for port in service["spec"]["ports"]
        ],
    }


def _endpoint(pod: Body) -> dict[str, Any]:
    ready = has_condition(pod, "Ready") and not is_deleted(pod)
    return {
        "addresses": [status_of(pod)["podIP"]],
        "conditions": {"ready": ready, "serving": ready, "terminating": is_deleted(pod)},
        "nodeName": pod["spec"]["nodeName"],
        "targetRef": {
            "kind": "Pod",
            "name": pod["metadata"]["name"],
            "namespace": pod["metadata"]["namespace"],
            "uid": pod["metadata"]["uid"],
        },
    }
