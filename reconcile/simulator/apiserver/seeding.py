"""Turns objects that a user brings (`kubectl get -o yaml`, a file of the examples) into objects of a live cluster.

What a server has written is kept: uid, resourceVersion, managedFields, status. What is missing is filled in.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from typing import Any

from reconcile.cluster.errors import Invalid
from reconcile.simulator.apiserver.registry import DEFINITION, Registry
from reconcile.simulator.apiserver.schema_files import guess
from reconcile.simulator.apiserver.served_kinds import Origin, ServedKind
from renderer.model.ref import Body, ref_of


def flattened(objects: Iterable[Body]) -> Iterator[Body]:
    """The items of a List stand for themselves; definitions come first, since they say how the others are served."""
    every = [item for body in objects for item in (body["items"] if "items" in body and "kind" in body else (body,))]
    definitions = [body for body in every if body.get("kind") == DEFINITION.kind]
    return iter((*definitions, *(body for body in every if body.get("kind") != DEFINITION.kind)))


def served_for(registry: Registry, body: Body) -> ServedKind:
    """The object's kind. A kind without a definition is served open from now on, and one of which our definition lacks
    fields takes what it does not know."""
    ref = ref_of(body)
    found = registry.find(ref.api_version, ref.kind)
    if found is None:
        return registry.open(guess(ref.api_version, ref.kind, namespaced=bool(ref.namespace)))
    if found.origin is Origin.DEFINED and any(cause.field for cause in found.strategy.refused(body)):
        return registry.relax(found.kind)
    return found


def live(served: ServedKind, body: Body, *, version: int, time: str) -> dict[str, Any]:
    """The object as if the server had always had it. Defaults are filled in only where no server has seen it."""
    metadata = body.get("metadata") or {}
    seen = bool(metadata.get("resourceVersion"))
    kept = dict(body) if seen else _read(served, body)
    ref = ref_of(body)
    identity = f"{ref.api_version} {ref.kind} {ref.namespace} {ref.name}"
    filled = {
        "uid": str(uuid.uuid5(uuid.NAMESPACE_OID, identity)),
        "creationTimestamp": time,
        "resourceVersion": str(version),
        **({"generation": 1} if served.counts else {}),
    }
    given = {name: value for name, value in (kept.get("metadata") or {}).items() if value not in (None, "")}
    return {**kept, "metadata": {**filled, **given}}


def missing_namespaces(bodies: Iterable[Body], everything: Iterable[Body]) -> tuple[Body, ...]:
    """A Namespace for each one that a body is in and that is missing."""
    there = {body["metadata"]["name"] for body in everything if body["kind"] == "Namespace"}
    used = {body["metadata"].get("namespace") for body in bodies} - {None, ""}
    return tuple(namespace(name) for name in sorted(used - there))


def namespace(name: str) -> Body:
    labels = {"kubernetes.io/metadata.name": name}
    spec, status = {"finalizers": ["kubernetes"]}, {"phase": "Active"}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata, "spec": spec, "status": status}


def _read(served: ServedKind, body: Body) -> dict[str, Any]:
    """As the server reads it."""
    try:
        return served.strategy.read(body)
    except (AttributeError, TypeError, KeyError) as error:
        raise Invalid(ref_of(body), "the object does not fit its kind", served.strategy.refused(body)) from error
