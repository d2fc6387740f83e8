"""Puts a user's objects, status included, into any cluster through the Protocol: the world as it is when it begins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconcile.cluster.errors import AlreadyExists, NotFound
from reconcile.cluster.protocol import Cluster
from reconcile.simulator.actors.actor_client import NODE, ActorClient
from reconcile.simulator.rehearsal.rehearsal import HARVESTER_NAMESPACES
from renderer.catalog.kinds import Kinds
from renderer.model.ref import Body, Ref, ref_of

ACCOUNTS = (("harvester-system", "harvester"), ("cattle-system", "system-upgrade-controller"))
"""Service accounts that every Harvester cluster has; without them a real server makes no pod for our Jobs."""

_SERVER_SIDE = (
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "ownerReferences",
    "finalizers",
)
"""What another server has written, and what would name objects by uids that this one does not know."""


def seed(cluster: Cluster, objects: Iterable[Body], kinds: Kinds) -> tuple[Ref, ...]:
    """Creates the objects, their namespaces first; a List counts as its items. What is there already stays as it is.

    Answers the refs of those that were left out because the kinds table does not have their kind.
    """
    client = ActorClient(cluster, kinds)
    bodies = list(_flat(objects))
    known = [body for body in bodies if kinds.find(str(body["apiVersion"]), str(body["kind"]))]
    for name in sorted({*HARVESTER_NAMESPACES, *(ref_of(body).namespace for body in known)} - {""}):
        _create(cluster, kinds, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    for namespace, name in ACCOUNTS:
        metadata = {"name": name, "namespace": namespace}
        _create(cluster, kinds, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    for body in known:
        made = _create(cluster, kinds, _bare(body))
        if made is not None:
            _finish(client, made, body)
    return tuple(ref_of(body) for body in bodies if body not in known)


def _create(cluster: Cluster, kinds: Kinds, body: Body) -> Body | None:
    ref = ref_of(body)
    try:
        return cluster.create(kinds.row(ref.api_version, ref.kind).kind, body, field_manager="seed").body
    except AlreadyExists:
        return None


def _finish(client: ActorClient, made: Body, body: Body) -> None:
    """Status comes by its own door where a kind has one, and a server adds a taint to each new Node."""
    if body.get("status"):
        try:
            made = client.patch_status(made, body["status"])
        except NotFound:
            client.patch(made, {"status": body["status"]})
    if (body["apiVersion"], body["kind"]) == NODE:
        client.patch(made, {"spec": {"taints": (body.get("spec") or {}).get("taints")}})


def _flat(objects: Iterable[Body]) -> Iterator[Body]:
    for body in objects:
        if "items" in body and "kind" in body:
            yield from body["items"]
        else:
            yield body


def _bare(body: Body) -> dict[str, Any]:
    metadata: Mapping[str, Any] = body.get("metadata") or {}
    kept = {key: value for key, value in metadata.items() if key not in _SERVER_SIDE}
    return {**{key: value for key, value in body.items() if key != "status"}, "metadata": kept}
