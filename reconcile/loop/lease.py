"""Leader election by a Lease, and the guard that prevents writes without it.

A leader believes its lease only as long as its own monotonic clock says that no one else can hold it yet: one that was
paused, or cut off, stops writing automatically. The Lease's times are for others to read; no wall clock is trusted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from reconcile.cluster.errors import AlreadyExists, Away, ClusterError, Conflict, NotFound
from reconcile.cluster.protocol import Cluster
from reconcile.loop.outage_clock import OutageClock
from renderer.model.plan_api import PREFIX
from renderer.model.ref import Body, Kind, Ref

LEASE = Kind(api_version="coordination.k8s.io/v1", kind="Lease", plural="leases", namespaced=True)
NAME = "3509939c.harvesterhci.io"
"""The existing manager's Lease, so that the two never run at once."""

DURATION = 15.0
RENEW_WITHIN = 10.0
RETRY = 2.0
OUTAGES = f"{PREFIX}outages"
"""The Lease's annotation in which one leader reports outages to the next."""
_SILENT = 120.0
"""Seconds without a renewal after which a holder must be gone, even if its clock differs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """Somebody's claim as it was last seen, and when on our clock it last changed."""

    claim: tuple[Any, ...]
    at: float


class Election:
    """One contender, used from one thread; `leads` from any. `clock` is monotonic, `now` is for the Lease's times.

    `outage_clock` is notified when the API server does not answer, and of times without a leader."""

    def __init__(
        self,
        cluster: Cluster,
        namespace: str,
        identity: str,
        *,
        clock: Callable[[], float],
        now: Callable[[], datetime],
        outage_clock: OutageClock,
    ) -> None:
        self._outages = outage_clock
        self._cluster = cluster
        self._ref = Ref(api_version=LEASE.api_version, kind=LEASE.kind, namespace=namespace, name=NAME)
        self._identity = identity
        self._clock = clock
        self._now = now
        self._held_until = float("-inf")
        self._seen: _Seen | None = None
        self._away = False
        self.why = ""
        """Explains why the last attempt did not have the lease; empty if it did."""
        self.transitions: int | None = None
        """The number of times that the lease has changed hands, as last seen; None before."""

    def leads(self) -> bool:
        """True if nobody else can hold the lease now."""
        return self._clock() < self._held_until

    def require(self) -> None:
        """Raises `LostLease` while the lease is not surely held: a guard for a client that writes."""
        if not self.leads():
            raise LostLease

    def attempt(self) -> bool:
        """Takes or renews the lease if possible; returns whether it is ours. Raises no error of the cluster."""
        started = self._clock()
        try:
            self.why = self._attempt()
        except ClusterError as error:
            self.why = error.problem.message
            if isinstance(error, Away):
                self._away = True
                self._outages.lost()
            return self.leads()
        if self._away:
            self._away = False
            self._outages.found()
        self._held_until = float("-inf") if self.why else started + RENEW_WITHIN
        return not self.why

    def release(self) -> None:
        """Gives the lease up, so that the next one need not wait for it to run out."""
        if not self.leads():
            return
        self._held_until = float("-inf")
        try:
            lease = self._cluster.get(LEASE, self._ref).body
            if _holder(lease) == self._identity:
                self._write(lease, "", 1)
        except ClusterError:
            return

    def _attempt(self) -> str:
        """Explains why the lease is not ours; empty if it is."""
        try:
            lease = self._cluster.get(LEASE, self._ref).body
        except NotFound:
            return self._create()
        self.transitions = _transitions(lease)
        if _holder(lease) not in ("", self._identity) and not self._has_run_out(lease):
            return f"{_holder(lease)} holds {self._ref}"
        self._learn(lease)
        try:
            self._write(lease, self._identity, int(DURATION))
        except Conflict:
            return "another manager took the lease first"
        return ""

    def _learn(self, lease: Body) -> None:
        """Reads from another loop's Lease its outages, and when it was last there."""
        if _holder(lease) == self._identity:
            return
        self._outages.recall(str((lease["metadata"].get("annotations") or {}).get(OUTAGES) or ""))
        renewed = str((lease.get("spec") or {}).get("renewTime") or "")
        if renewed and self._now() - datetime.fromisoformat(renewed) > timedelta(seconds=DURATION):
            self._outages.missed(datetime.fromisoformat(renewed))

    def _create(self) -> str:
        metadata = {"name": self._ref.name, "namespace": self._ref.namespace}
        spec = self._spec(self._identity, int(DURATION), 0)
        body = {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
        try:
            self._cluster.create(LEASE, body)
        except AlreadyExists:
            return "another manager took the lease first"
        return ""

    def _has_run_out(self, lease: Body) -> bool:
        """True if the claim has stood unchanged for its whole duration, on our clock."""
        spec = lease.get("spec") or {}
        claim = (spec.get("holderIdentity"), spec.get("renewTime"), spec.get("leaseTransitions"))
        if self._seen is None or self._seen.claim != claim:
            self._seen = _Seen(claim=claim, at=self._clock())
        return self._clock() - self._seen.at > float(spec.get("leaseDurationSeconds") or DURATION)

    def _write(self, lease: Body, holder: str, duration: int) -> None:
        spec = lease.get("spec") or {}
        transitions = _transitions(lease) + (_holder(lease) != self._identity)
        reported = {"annotations": {OUTAGES: self._outages.reported() or None}}
        metadata = {"resourceVersion": lease["metadata"]["resourceVersion"], **reported}
        expected = self._spec(holder, duration, transitions)
        if _holder(lease) == holder and spec.get("acquireTime"):
            expected["acquireTime"] = spec["acquireTime"]
        self._cluster.patch(LEASE, self._ref, {"metadata": metadata, "spec": expected})

    def _spec(self, holder: str, duration: int, transitions: int) -> dict[str, Any]:
        moment = self._now().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return {
            "holderIdentity": holder,
            "leaseDurationSeconds": duration,
            "leaseTransitions": transitions,
            "acquireTime": moment,
            "renewTime": moment,
        }


def nobody_leads(cluster: Cluster, namespace: str, now: datetime) -> str:
    """Reports that nobody holds the lease; empty if somebody does, or if it cannot be read."""
    ref = Ref(api_version=LEASE.api_version, kind=LEASE.kind, namespace=namespace, name=NAME)
    start = "so the upgrade does not continue; start `upgradeplan run` or `upgradeplan apply`"
    try:
        lease = cluster.get(LEASE, ref).body
    except NotFound:
        return f"no manager has ever held {ref}, {start}"
    except ClusterError:
        return ""
    holder, renewed = _holder(lease), str((lease.get("spec") or {}).get("renewTime") or "")
    if not holder:
        return f"no manager holds {ref}, {start}"
    if renewed and (now - datetime.fromisoformat(renewed)).total_seconds() > _SILENT:
        return f"{holder} holds {ref} and has not renewed it since {renewed}, {start}"
    return ""


def _transitions(lease: Body) -> int:
    return int((lease.get("spec") or {}).get("leaseTransitions") or 0)


def _holder(lease: Body) -> str:
    return str((lease.get("spec") or {}).get("holderIdentity") or "")


class LostLease(Away):
    """A write was about to be made without the lease."""

    def __init__(self) -> None:
        super().__init__("the lease is no longer held, and nothing is written without it")
