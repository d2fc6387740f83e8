"""Kills the loop on a real API server: a process is gone from one write on, and the next one takes over. A process that
is killed gives nothing up, the lease neither.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from threading import Event, Thread

from controlplane.waiting import PATIENCE

from reconcile.cluster.errors import Away
from reconcile.cluster.exchange import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, Exchange, Request, Transport
from reconcile.loop.lease import LEASE, NAME
from reconcile.loop.round import Round
from reconcile.simulator.apiserver.requests import Moment
from renderer.model.ref import Ref
from support.installed import ACCOUNT
from support.real_upgrade import RealUpgrade, process

WAYS = ("lease", "status", "apply", "merge patch", "JSON patch", "delete")
"""The ways in which the loop writes, and the API server stores."""
_PATCHES = {APPLY_PATCH: "apply", MERGE_PATCH: "merge patch", JSON_PATCH: "JSON patch"}
_MOMENTS = (Moment.AFTER, Moment.BEFORE)
"""In turn; the first write of all makes the lease, and a lease that was never made would kill nobody."""

Sort = Callable[[Request], str | None]


@dataclass
class KillPlan:
    """Kills once at each sort of write, after and before it is carried out in turn."""

    sort: Sort
    kills: dict[str, Moment] = field(default_factory=dict)

    def strikes(self, request: Request) -> Moment | None:
        sort = self.sort(request)
        if sort is None or sort in self.kills:
            return None
        self.kills[sort] = _MOMENTS[len(self.kills) % 2]
        return self.kills[sort]


def way_of(request: Request) -> str | None:
    """One of `WAYS`; None for what is no write, and for events, which the upgrade does not depend on."""
    resource = _resource(request.path)
    if not _writes(request) or resource == "events":
        return None
    if resource == "leases":
        return "lease"
    if request.method == "DELETE":
        return "delete"
    return "status" if resource.endswith("/status") else _PATCHES[request.content_type]


def resource_of(request: Request) -> str | None:
    """`PATCH upgradeplans/status`. None for what is no write, and for those that the upgrade does not depend on."""
    resource = _resource(request.path)
    return f"{request.method} {resource}" if _writes(request) and resource not in ("events", "leases") else None


def _writes(request: Request) -> bool:
    return request.method != "GET" and ("dryRun", "All") not in request.query


def _resource(path: str) -> str:
    """`plural`, or `plural/subresource`, of `/apis/GROUP/VERSION/namespaces/NAMESPACE/PLURAL/NAME/SUBRESOURCE`."""
    parts = path.split("/")[3 if path.startswith("/api/") else 4 :]
    plural, *rest = parts[2:] if parts[0] == "namespaces" and len(parts) > 2 else parts
    return "/".join((plural, *rest[1:]))


class KillableTransport:
    """The connections of one process; see `exchange.Transport`. Once it is dead no request leaves it any more."""

    def __init__(self, transport: Transport, plan: KillPlan, ended: Event) -> None:
        self._transport = transport
        self._plan = plan
        self._ended = ended
        self.dead = False

    def open(self, request: Request) -> Exchange:
        if self.dead:
            raise Away("this process is gone")
        moment = self._plan.strikes(request)
        if moment is Moment.BEFORE:
            self._die()
        exchange = self._transport.open(request)
        if moment is Moment.AFTER:
            exchange.close()
            self._die()
        return exchange

    def _die(self) -> None:
        self.dead = True
        self._ended.set()
        raise Away("this process is gone")


def run_through_kills(place: RealUpgrade, example: str, plan: KillPlan) -> int:
    """Runs the loop until the upgrade is over, in one process after the other. Returns how many there were."""
    for number in count(1):
        ended = Event()
        transport = KillableTransport(place.transport(), plan, ended)
        last = _live(place, example, transport, ended, f"process-{number}")
        if not transport.dead:
            assert last is not None
            assert last.over, [wait.text for wait in last.decision.waits] if last.decision else last
            return number
        _let_the_lease_run_out(place)
    raise AssertionError("count() ends nowhere")


def _live(place: RealUpgrade, example: str, transport: Transport, ended: Event, identity: str) -> Round | None:
    """One process, until it is killed, the upgrade is over or patience ends; its last round."""
    last: list[Round] = []

    def on_round(done: Round) -> None:
        last[:] = [done]
        if done.over:
            ended.set()

    manager = process(place, example, on_round, transport=transport, identity=identity)
    worker = Thread(target=manager.run, daemon=True)
    worker.start()
    ended.wait(timeout=PATIENCE)
    manager.stop()
    worker.join(timeout=PATIENCE)
    assert not worker.is_alive()
    return last[0] if last else None


def _let_the_lease_run_out(place: RealUpgrade) -> None:
    """The claim stands, but for one second only, so that the next process need not wait for fifteen."""
    ref = Ref(api_version=LEASE.api_version, kind=LEASE.kind, namespace=ACCOUNT[0], name=NAME)
    lease = place.admin.patch(LEASE, ref, {"spec": {"leaseDurationSeconds": 1}}).body
    assert lease["spec"]["holderIdentity"], "it was given up"
