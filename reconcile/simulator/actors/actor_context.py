"""What every actor is given, and the short words that all of them use about objects."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from reconcile.simulator.actors.actor_client import ActorClient
from reconcile.simulator.actors.fault_plan import FaultPlan
from reconcile.simulator.actors.settings import Settings
from reconcile.simulator.actors.simulation_log import SimulationEventType, SimulationLog
from reconcile.status.times import time_text
from renderer.model.ref import Body


class Actor(Protocol):
    """Somebody who acts on the cluster by looking at it again and again."""

    def step(self, now: datetime) -> bool:
        """Does what can be done now; whether anything was done, so that it is worth asking again at once."""
        ...

    def next_due(self) -> datetime | None:
        """When there will be something to do even if nobody else does anything."""
        ...


class Outage:
    """Whether the API server is away; nobody can act meanwhile."""

    def __init__(self, announce: Callable[[float], None], log: SimulationLog) -> None:
        """`announce` is told for how many seconds the API server goes away."""
        self._announce = announce
        self._ledger = log
        self.until: datetime | None = None

    def begin(self, now: datetime, lasts: timedelta, why: str) -> None:
        self.until = now + lasts
        self._ledger.add(now, SimulationEventType.WENT_AWAY, "the API server", detail=why)
        self._announce(lasts.total_seconds())

    def is_on(self, now: datetime) -> bool:
        return self.until is not None and now < self.until


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorContext:
    """`client` is under the name of nobody in particular: an actor takes its own view by `stage.by`."""

    client: ActorClient
    settings: Settings
    faults: FaultPlan
    log: SimulationLog
    outage: Outage


def labels_of(body: Body) -> Mapping[str, str]:
    return body["metadata"].get("labels") or {}


def annotations_of(body: Body) -> Mapping[str, str]:
    return body["metadata"].get("annotations") or {}


def status_of(body: Body) -> Mapping[str, Any]:
    return body.get("status") or {}


def is_deleted(body: Body) -> bool:
    return bool(body["metadata"].get("deletionTimestamp"))


def is_owned_by(body: Body, owner: Body) -> bool:
    owners = body["metadata"].get("ownerReferences") or ()
    return any(each["uid"] == owner["metadata"]["uid"] for each in owners)


def owner_reference(owner: Body) -> dict[str, Any]:
    """A controlling owner, as Kubernetes' controllers write it."""
    metadata = owner["metadata"]
    named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {**named, "controller": True, "blockOwnerDeletion": True}


def has_condition(body: Body, type_: str, status: str = "True") -> bool:
    found = status_of(body).get("conditions") or ()
    return any(each.get("type") == type_ and each.get("status") == status for each in found)


def conditions(body: Body, now: datetime, *wanted: Mapping[str, str], time: str = "lastTransitionTime") -> list[Any]:
    """The body's conditions with the wanted ones in them; the time is that of the last change of status."""
    present = list(status_of(body).get("conditions") or ())
    for each in wanted:
        old = next((entry for entry in present if entry.get("type") == each["type"]), None)
        kept = old is not None and old.get("status") == each["status"]
        new = {time: old[time] if kept and old is not None and time in old else time_text(now), **each}
        if old is None:
            present.append(new)
        else:
            present[present.index(old)] = {**old, **new}
    return present


def mark(*parts: str) -> str:
    """Five characters that follow from the parts alone, for names."""
    return hashlib.sha256("/".join(parts).encode()).hexdigest()[:5]
