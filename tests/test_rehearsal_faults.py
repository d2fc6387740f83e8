"""Trouble on demand: each kind of it, by verb, kind and count, and what it leaves behind."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from reconcile.cluster.errors import (
    Away,
    ClusterError,
    Conflict,
    Gone,
    Invalid,
    NotFound,
    ServerFailed,
    Throttled,
)
from reconcile.cluster.protocol import Cluster, Selection
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from reconcile.simulator.apiserver.requests import LoggedRequest, Moment
from renderer.model.ref import Kind, Ref

START = datetime(2026, 11, 28, 12, 0, 0, tzinfo=UTC)
CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
SECRET = Kind(api_version="v1", kind="Secret", plural="secrets", namespaced=True)


def ref(name: str, kind: Kind = CONFIG_MAP) -> Ref:
    return Ref(api_version=kind.api_version, kind=kind.kind, namespace="default", name=name)


def body(name: str, **data: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "default", "name": name}, "data": data}


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster(SimulatedClock(START), definitions=())


VERBS: dict[str, Callable[[Cluster], object]] = {
    "get": lambda client: client.get(CONFIG_MAP, ref("c")),
    "list": lambda client: client.list(Selection(kind=CONFIG_MAP)),
    "watch": lambda client: client.watch(Selection(kind=CONFIG_MAP), resource_version="", window=0),
    "apply": lambda client: client.apply(CONFIG_MAP, body("c", b="2")),
    "patch": lambda client: client.patch(CONFIG_MAP, ref("c"), {"data": {"a": "2"}}),
    "create": lambda client: client.create(CONFIG_MAP, body("d")),
    "delete": lambda client: client.delete(CONFIG_MAP, ref("c")),
}
TROUBLES: dict[ApiFault, type[ClusterError]] = {
    ApiFault.CONFLICT: Conflict,
    ApiFault.GONE: Gone,
    ApiFault.INVALID: Invalid,
    ApiFault.THROTTLED: Throttled,
    ApiFault.FAILED: ServerFailed,
    ApiFault.AWAY: Away,
    ApiFault.HANG: Away,
}


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("trouble", TROUBLES)
def test_each_verb_meets_each_trouble_once(cluster: EmbeddedCluster, verb: str, trouble: ApiFault) -> None:
    cluster.client().create(CONFIG_MAP, body("c", a="1"))
    client = cluster.client()
    before = cluster.store.version
    client.faults.add(InjectedApiFault(trouble=trouble, verb=verb))

    with pytest.raises(TROUBLES[trouble]):
        VERBS[verb](client)

    assert cluster.store.version == before, "a request that met trouble changed something"
    assert client.faults.pending == ()
    VERBS[verb](client)


@pytest.mark.parametrize(
    "fault",
    [
        InjectedApiFault(trouble=ApiFault.FAILED, verb="list"),
        InjectedApiFault(trouble=ApiFault.FAILED, verb="get", kind="Secret"),
        InjectedApiFault(trouble=ApiFault.FAILED, verb="get", kind="ConfigMap", name="d"),
    ],
)
def test_a_fault_takes_only_what_it_names(cluster: EmbeddedCluster, fault: InjectedApiFault) -> None:
    client = cluster.client()
    client.create(CONFIG_MAP, body("c"))
    client.faults.add(fault)
    client.get(CONFIG_MAP, ref("c"))
    assert client.faults.pending == (fault,)


def test_skip_and_count(cluster: EmbeddedCluster) -> None:
    client = cluster.client()
    client.create(CONFIG_MAP, body("c"))
    client.faults.add(InjectedApiFault(trouble=ApiFault.THROTTLED, verb="get", skip=1, count=2, seconds=7))

    def outcome() -> str:
        try:
            client.get(CONFIG_MAP, ref("c"))
        except Throttled as error:
            return f"throttled for {error.retry_after:g} s"
        return "fine"

    assert [outcome() for _ in range(4)] == ["fine", "throttled for 7 s", "throttled for 7 s", "fine"]


def test_faults_are_one_clients_own(cluster: EmbeddedCluster) -> None:
    loop, actor = cluster.client(), cluster.client()
    loop.faults.add(InjectedApiFault(trouble=ApiFault.FAILED))
    actor.create(CONFIG_MAP, body("c"))
    with pytest.raises(ServerFailed):
        loop.get(CONFIG_MAP, ref("c"))


def test_a_request_that_hangs_takes_its_time(cluster: EmbeddedCluster) -> None:
    client = cluster.client()
    client.faults.add(InjectedApiFault(trouble=ApiFault.HANG, verb="create", seconds=45))
    with pytest.raises(Away):
        client.create(CONFIG_MAP, body("c"))
    assert (cluster.clock.now() - START).total_seconds() == 45


def test_an_answer_that_is_lost_was_a_write(cluster: EmbeddedCluster) -> None:
    client = cluster.client()
    client.faults.add(InjectedApiFault(trouble=ApiFault.LOST, verb="create"))
    with pytest.raises(Away):
        client.create(CONFIG_MAP, body("c", a="1"))
    assert client.get(CONFIG_MAP, ref("c")).body["data"] == {"a": "1"}


def test_away_lasts_as_long_as_it_is_said(cluster: EmbeddedCluster) -> None:
    client = cluster.client()
    client.faults.away(60)
    with pytest.raises(Away):
        client.list(Selection(kind=CONFIG_MAP))
    cluster.clock.advance(59)
    with pytest.raises(Away):
        client.list(Selection(kind=CONFIG_MAP))
    cluster.clock.advance(1)
    client.list(Selection(kind=CONFIG_MAP))


def test_history_is_lost_between_two_pages(cluster: EmbeddedCluster) -> None:
    cluster.seed(body(f"c{number:04}") for number in range(1200))
    client = cluster.client()
    client.faults.add(InjectedApiFault(trouble=ApiFault.GONE, verb="list", skip=2))
    with pytest.raises(Gone):
        client.list(Selection(kind=CONFIG_MAP))
    assert client.log.counts()["list", "ConfigMap"] == 3


class CallerKilled(BaseException):
    """Ends the caller as a crash would."""


@pytest.mark.parametrize(("moment", "there"), [(Moment.BEFORE, False), (Moment.AFTER, True)])
def test_a_crash_before_or_after_a_write(cluster: EmbeddedCluster, moment: Moment, there: bool) -> None:
    def crash(request: LoggedRequest, now: Moment) -> None:
        if (request.verb, now) == ("create", moment):
            raise CallerKilled

    client = cluster.client(on_write=crash)
    with pytest.raises(CallerKilled):
        client.create(CONFIG_MAP, body("c"))
    assert bool(cluster.client().list(Selection(kind=CONFIG_MAP)).items) is there


def test_a_dry_run_and_a_read_call_no_hook(cluster: EmbeddedCluster) -> None:
    told: list[str] = []
    client = cluster.client(on_write=lambda request, moment: told.append(f"{moment.value} {request}"))
    client.create(CONFIG_MAP, body("c"), dry_run=True)
    client.create(CONFIG_MAP, body("c"))
    client.get(CONFIG_MAP, ref("c"))
    assert told == ["before create ConfigMap default/c", "after create ConfigMap default/c"]


def test_requests_are_counted(cluster: EmbeddedCluster) -> None:
    client = cluster.client()
    client.apply(CONFIG_MAP, body("c", a="1"))
    client.apply(CONFIG_MAP, body("c", a="1"), dry_run=True)
    client.patch(CONFIG_MAP, ref("c"), {"data": {"a": "2"}})
    client.list(Selection(kind=CONFIG_MAP))
    with pytest.raises(NotFound):
        client.delete(CONFIG_MAP, ref("d"))

    assert client.log.counts() == {
        ("apply", "ConfigMap"): 2,
        ("patch", "ConfigMap"): 1,
        ("list", "ConfigMap"): 1,
        ("delete", "ConfigMap"): 1,
    }
    assert [str(request) for request in client.log.writes] == [
        "apply ConfigMap default/c",
        "patch ConfigMap default/c",
        "delete ConfigMap default/d",
    ]
