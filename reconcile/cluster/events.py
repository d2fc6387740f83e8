"""Emits core/v1 Events over the Protocol. The caller decides what is one cause and counts its occurrences."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconcile.cluster.errors import AlreadyExists, NotFound
from reconcile.cluster.protocol import Answer, Cluster
from reconcile.status.times import time_text
from renderer.model.ref import Body, Kind, Ref, ref_of

EVENT = Kind(api_version="v1", kind="Event", plural="events", namespaced=True)

_NAME_LIMIT = 253 - 17  # room for the dot and the digest


class EventSeverity(StrEnum):
    """An Event's `type`."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """Something that happened `count` times to one object between `first` and `last` (both with a time zone). `host` is
    the node that it happened on, empty if it is about none in particular."""

    regarding: Ref
    uid: str
    severity: EventSeverity
    reason: str
    message: str
    component: str
    first: datetime
    last: datetime
    count: int = 1
    host: str = ""


def emit(cluster: Cluster, occurrence: Occurrence) -> Answer:
    """Creates the Event, or raises its count: one request for each, two where the Event is not as `count` expects.

    The name follows from cause and `first`, so that a repeated call after a crash makes no second Event.
    """
    if occurrence.count > 1:
        try:
            return _recount(cluster, occurrence)
        except NotFound:  # the API server drops Events after an hour
            return cluster.create(EVENT, event_of(occurrence))
    try:
        return cluster.create(EVENT, event_of(occurrence))
    except AlreadyExists:
        return _recount(cluster, occurrence)


def event_of(occurrence: Occurrence) -> Body:
    """The Event as `kubectl describe` shows it. Those about cluster-scoped objects live in `default`."""
    regarding = occurrence.regarding
    return {
        "apiVersion": EVENT.api_version,
        "kind": EVENT.kind,
        "metadata": {"namespace": regarding.namespace or "default", "name": _name(occurrence)},
        "involvedObject": {
            "apiVersion": regarding.api_version,
            "kind": regarding.kind,
            **({"namespace": regarding.namespace} if regarding.namespace else {}),
            "name": regarding.name,
            "uid": occurrence.uid,
        },
        "type": str(occurrence.severity),
        "reason": occurrence.reason,
        "message": occurrence.message,
        "source": {"component": occurrence.component, **({"host": occurrence.host} if occurrence.host else {})},
        "reportingComponent": occurrence.component,
        "reportingInstance": "",
        "firstTimestamp": time_text(occurrence.first),
        "lastTimestamp": time_text(occurrence.last),
        "count": occurrence.count,
    }


def _recount(cluster: Cluster, occurrence: Occurrence) -> Answer:
    patch = {"count": occurrence.count, "lastTimestamp": time_text(occurrence.last)}
    return cluster.patch(EVENT, ref_of(event_of(occurrence)), patch)


def _name(occurrence: Occurrence) -> str:
    parts = (
        occurrence.uid,
        occurrence.severity,
        occurrence.reason,
        occurrence.message,
        occurrence.component,
        time_text(occurrence.first),
    )
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return f"{occurrence.regarding.name[:_NAME_LIMIT]}.{digest}"
