"""Support for tests that kill the loop on a real API server: a process that is gone from one write on, and the next one
that takes over. Nothing is given up on the way out: not the lease either."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from threading import Thread

from reconcile.cluster.errors import Away
from reconcile.cluster.exchange import Exchange, Request, Transport
from reconcile.loop.lease import LEASE, NAME
from reconcile.loop.reconciler import Round
from reconcile.simulator.apiserver.client import Moment
from renderer.model.ref import Ref
from support.real_upgrade import ACCOUNT, PATIENCE, RealUpgrade, process
from support.rehearsals import Killed

_COURTESIES = ("events", "leases")
_MOMENTS = (Moment.BEFORE, Moment.AFTER)


@dataclass
class KillPlan:
    """Kills once at each sort of write (`PATCH upgradeplans/status`), before and after it is carried out in turn."""

    kills: dict[str, Moment] = field(default_factory=dict)

    def strikes(self, request: Request) -> Moment | None:
        sort = sort_of(request)
        if sort is None or sort in self.kills:
            return None
        self.kills[sort] = _MOMENTS[len(self.kills) % 2]
        return self.kills[sort]


def sort_of(request: Request) -> str | None:
    """None for what is no write, and for those that the upgrade does not depend on."""
    resource = _resource(request.path)
    if request.method == "GET" or ("dryRun", "All") in request.query or resource in _COURTESIES:
        return None
    return f"{request.method} {resource}"


def _resource(path: str) -> str:
    """`plural`, or `plural/subresource`, of `/apis/GROUP/VERSION/namespaces/NAMESPACE/PLURAL/NAME/SUBRESOURCE`."""
    parts = path.split("/")[3 if path.startswith("/api/") else 4 :]
    plural, *rest = parts[2:] if parts[0] == "namespaces" and len(parts) > 2 else parts
    return "/".join((plural, *rest[1:]))


class KillableTransport:
    """The connections of one process; see `exchange.Transport`."""

    def __init__(self, transport: Transport, sample: KillPlan) -> None:
        self._transport = transport
        self._sample = sample
        self.dead = False

    def open(self, request: Request) -> Exchange:
        if self.dead:
            raise Away("this process is gone")
        moment = self._sample.strikes(request)
        if moment is Moment.BEFORE:
            self._die()
        exchange = self._transport.open(request)
        if moment is Moment.AFTER:
            exchange.close()
            self._die()
        return exchange

    def _die(self) -> None:
        self.dead = True
        raise Killed


def run_through_kills(place: RealUpgrade, example: str, sample: KillPlan) -> int:
    """Runs the loop until the plan is over, in one process after the other. Answers how many there were."""
    for number in count(1):
        transport = KillableTransport(place.transport(), sample)
        last = _lived(place, example, transport, f"process-{number}")
        if not transport.dead:
            assert last is not None
            assert last.over, [wait.text for wait in last.decision.waits] if last.decision else last
            return number
        _let_the_lease_run_out(place)
    raise AssertionError("nobody counts so far")


def _lived(place: RealUpgrade, example: str, transport: Transport, identity: str) -> Round | None:
    """One process, until it is killed, the plan is over or patience ends; its last round."""
    last: list[Round] = []

    def on_round(done: Round) -> None:
        last[:] = [done]
        if done.over:
            manager.stop()

    def run() -> None:
        with suppress(Killed):
            manager.run()

    manager = process(place, example, on_round, transport=transport, identity=identity)
    worker = Thread(target=run, daemon=True)
    worker.start()
    worker.join(timeout=PATIENCE)
    manager.stop()
    worker.join(timeout=30)
    assert not worker.is_alive()
    return last[0] if last else None


def _let_the_lease_run_out(place: RealUpgrade) -> None:
    """The claim stands, but for one second only, so that whoever comes next need not wait for fifteen."""
    ref = Ref(api_version=LEASE.api_version, kind=LEASE.kind, namespace=ACCOUNT[0], name=NAME)
    lease = place.admin.patch(LEASE, ref, {"spec": {"leaseDurationSeconds": 1}}).body
    assert lease["spec"]["holderIdentity"], "it was given up"
