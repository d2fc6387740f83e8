"""Windows of a watch: when they end, what they say last, and what a resume brings."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from reconcile.cluster.errors import Away, Gone
from reconcile.cluster.listwatch import ListWatch
from reconcile.cluster.protocol import EventType, Selection, WatchEvent, Window
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.embedded_client import EmbeddedClient
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from renderer.model.ref import Kind, Ref

CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
SECRET = Kind(api_version="v1", kind="Secret", plural="secrets", namespaced=True)
SELECTION = Selection(kind=CONFIG_MAP)


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster(SimulatedClock(datetime(2026, 11, 28, tzinfo=UTC)), definitions=())


@pytest.fixture
def client(cluster: EmbeddedCluster) -> EmbeddedClient:
    return cluster.client()


def body(name: str, kind: str = "ConfigMap") -> dict[str, object]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"namespace": "default", "name": name}}


def ref(name: str) -> Ref:
    return Ref(api_version="v1", kind="ConfigMap", namespace="default", name=name)


def told(events: Iterator[WatchEvent] | Window) -> list[str]:
    return [f"{event.type} {event.body['metadata'].get('name', '')}".strip() for event in events]


def version(client: EmbeddedClient) -> str:
    return client.list(SELECTION).resource_version


def test_a_window_of_no_length_brings_what_has_happened(client: EmbeddedClient) -> None:
    start = version(client)
    client.create(CONFIG_MAP, body("a"))
    client.create(SECRET, body("s", "Secret"))
    window = client.watch(SELECTION, resource_version=start, window=0)
    assert told(window) == ["ADDED a", "BOOKMARK"]


def test_a_bookmark_carries_the_version_on(client: EmbeddedClient) -> None:
    start = version(client)
    client.create(SECRET, body("s", "Secret"))
    (bookmark,) = client.watch(SELECTION, resource_version=start, window=0)
    assert bookmark.body["metadata"] == {"resourceVersion": version(client)}
    assert told(client.watch(SELECTION, resource_version=version(client), window=0)) == []


def test_a_resume_neither_repeats_nor_loses(client: EmbeddedClient) -> None:
    at = version(client)
    seen: list[str] = []
    for number in range(20):
        client.create(CONFIG_MAP, body(f"c{number}"))
        if number % 3 == 0:
            for event in client.watch(SELECTION, resource_version=at, window=0):
                at = event.body["metadata"]["resourceVersion"]
                seen += [] if event.type is EventType.BOOKMARK else [event.body["metadata"]["name"]]
    seen += [event.body["metadata"]["name"] for event in client.watch(SELECTION, resource_version=at, window=0)]
    assert seen == [f"c{number}" for number in range(20)]


def test_a_deleted_object_has_its_last_state_and_a_version_of_its_own(client: EmbeddedClient) -> None:
    created = client.create(CONFIG_MAP, {**body("a"), "data": {"k": "v"}}).body
    client.delete(CONFIG_MAP, ref("a"))
    (event,) = client.watch(SELECTION, resource_version=created["metadata"]["resourceVersion"], window=0)
    assert event.type is EventType.DELETED
    assert event.body["data"] == {"k": "v"}
    assert int(event.body["metadata"]["resourceVersion"]) > int(created["metadata"]["resourceVersion"])


def test_history_ends_where_it_was_compacted(cluster: EmbeddedCluster, client: EmbeddedClient) -> None:
    start = version(client)
    client.create(CONFIG_MAP, body("a"))
    cluster.compact()
    with pytest.raises(Gone):
        client.watch(SELECTION, resource_version=start, window=0)
    assert told(client.watch(SELECTION, resource_version=version(client), window=0)) == []


def test_an_open_window_meets_compaction(cluster: EmbeddedCluster, client: EmbeddedClient) -> None:
    window = client.watch(SELECTION, resource_version=version(client), window=60)
    client.create(CONFIG_MAP, body("a"))
    cluster.compact()
    with pytest.raises(Gone):
        told(window)


def test_a_watch_from_nowhere_begins_with_all_objects(client: EmbeddedClient) -> None:
    client.create(CONFIG_MAP, body("a"))
    assert told(client.watch(SELECTION, resource_version="", window=0)) == ["ADDED a"]


def test_a_window_that_is_cut(client: EmbeddedClient) -> None:
    start = version(client)
    client.create(CONFIG_MAP, body("a"))
    client.faults.add(InjectedApiFault(trouble=ApiFault.CUT, verb="watch"))
    window = iter(client.watch(SELECTION, resource_version=start, window=60))
    assert next(window).type is EventType.ADDED
    with pytest.raises(Away):
        next(window)


def test_an_outage_cuts_open_windows(client: EmbeddedClient) -> None:
    window = client.watch(SELECTION, resource_version=version(client), window=60)
    client.faults.away(30)
    with pytest.raises(Away):
        told(window)


class Reader(threading.Thread):
    """Reads a window to its end in a thread of its own."""

    def __init__(self, window: Window) -> None:
        super().__init__(daemon=True)
        self.told: list[str] = []
        self._window = window
        self.start()

    def run(self) -> None:
        for event in self._window:
            self.told.append(f"{event.type} {event.body['metadata'].get('name', '')}".strip())

    def done(self) -> list[str]:
        self.join(10)
        assert not self.is_alive(), "the window did not end"
        return self.told


def test_a_window_ends_when_its_time_has_passed(cluster: EmbeddedCluster, client: EmbeddedClient) -> None:
    reader = Reader(client.watch(SELECTION, resource_version=version(client), window=60))
    client.create(CONFIG_MAP, body("a"))
    client.create(SECRET, body("s", "Secret"))
    cluster.clock.advance(60)
    assert reader.done() == ["ADDED a", "BOOKMARK"]


def test_a_window_ends_when_it_is_closed(client: EmbeddedClient) -> None:
    window = client.watch(SELECTION, resource_version=version(client), window=60)
    reader = Reader(window)
    window.close()
    window.close()
    assert reader.done() == []


def test_the_list_watch_of_the_loop_works_on_it(cluster: EmbeddedCluster, client: EmbeddedClient) -> None:
    seen: list[str] = []
    watch = ListWatch(
        client,
        SELECTION,
        lambda event: seen.append(f"{event.type} {event.body['metadata']['name']}"),
        clock=lambda: cluster.clock.now().timestamp(),
        random=lambda: 0.5,
        window=0,
    )
    client.create(CONFIG_MAP, body("a"))
    watch.cycle()
    client.create(CONFIG_MAP, body("b"))
    client.delete(CONFIG_MAP, ref("a"))
    watch.cycle()
    client.faults.add(InjectedApiFault(trouble=ApiFault.GONE, verb="watch"))
    client.create(CONFIG_MAP, body("c"))
    watch.cycle()
    watch.cycle()
    assert seen == ["ADDED a", "ADDED b", "DELETED a", "ADDED c"]
