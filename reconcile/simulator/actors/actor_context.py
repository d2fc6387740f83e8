"""The context of every actor, timers, and the functions with which all of them look at objects."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from reconcile.simulator.actors.actor_client import ActorClient
from reconcile.simulator.actors.faults import FaultInjector
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
        """The time of the next action that needs no other change."""
        ...


class Outage:
    """The state of the API server; nobody can act while it is unavailable."""

    def __init__(self, announce: Callable[[float], None], log: SimulationLog) -> None:
        """`announce` is given the number of seconds for which the API server goes away."""
        self._announce = announce
        self._log = log
        self.until: datetime | None = None

    def begin(self, now: datetime, lasts: timedelta, why: str) -> None:
        self.until = now + lasts
        self._log.add(now, SimulationEventType.WENT_AWAY, "the API server", detail=why)
        self._announce(lasts.total_seconds())

    def is_on(self, now: datetime) -> bool:
        return self.until is not None and now < self.until


class Timers:
    """One actor's timers, by any key. What is not asked for in a step does not count as awaited."""

    def __init__(self) -> None:
        self._now: datetime | None = None
        self._due: dict[Hashable, datetime | None] = {}
        self._asked: set[Hashable] = set()

    def begin(self, now: datetime) -> None:
        """A new step."""
        self._now = now
        self._asked.clear()

    def passed(self, key: Hashable, lasts: timedelta | None) -> bool:
        """True if so much time has passed since this was first asked; never, if it lasts for None."""
        now = self._now
        if now is None:
            raise ValueError("begin was not called")
        due = self._due.setdefault(key, None if lasts is None else now + lasts)
        self._asked.add(key)
        return due is not None and now >= due

    def forget(self, key: Hashable) -> None:
        self._due.pop(key, None)
        self._asked.discard(key)

    def next_due(self) -> datetime | None:
        """The next moment at which an answer of the last step will be another."""
        now = self._now
        awaited = (self._due.get(key) for key in self._asked)
        return min((due for due in awaited if due is not None and now is not None and due > now), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorContext:
    """`client` belongs to no actor: each takes its own by `client.as_manager`."""

    client: ActorClient
    settings: Settings
    faults: FaultInjector
    log: SimulationLog
    outage: Outage


def name_of(body: Body) -> str:
    """`namespace/name`."""
    metadata = body["metadata"]
    return f"{metadata.get('namespace') or 'default'}/{metadata['name']}"


def labels_of(body: Body) -> Mapping[str, str]:
    return body["metadata"].get("labels") or {}


def annotations_of(body: Body) -> Mapping[str, str]:
    return body["metadata"].get("annotations") or {}


def status_of(body: Body) -> Mapping[str, Any]:
    return body.get("status") or {}


def is_deleted(body: Body) -> bool:
    return bool(body["metadata"].get("deletionTimestamp"))


def owner_reference(owner: Body) -> dict[str, Any]:
    """A controlling owner, as Kubernetes' controllers write it."""
    metadata = owner["metadata"]
    named = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {**named, "controller": True, "blockOwnerDeletion": True}


def has_condition(body: Body, type_: str, status: str = "True") -> bool:
    found = status_of(body).get("conditions") or ()
    return any(each.get("type") == type_ and each.get("status") == status for each in found)


def conditions(body: Body, now: datetime, *expected: Mapping[str, str], time: str = "lastTransitionTime") -> list[Any]:
    """The body's conditions with the expected ones in them; the time is that of the last change of status."""
    present = list(status_of(body).get("conditions") or ())
    for each in expected:
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
