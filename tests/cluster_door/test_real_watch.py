"""Watches on a real API server, over windows, an outage and lost history."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Iterator

import pytest
from controlplane.cluster import ControlPlane
from controlplane.waiting import PATIENCE

from cluster_door.kinds import (
    CONFIG_MAP,
    config_map,
    ref,
)
from cluster_door.real import wait_until
from reconcile.cluster import errors
from reconcile.cluster.listwatch import ListWatch
from reconcile.cluster.protocol import Cluster, EventType, Selection, WatchEvent


class Told:
    """Takes events from another thread, and waits for one."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._changed = threading.Condition()

    def __call__(self, event: WatchEvent) -> None:
        with self._changed:
            self.events.append(f"{event.type} {event.body['metadata']['name']}")
            self._changed.notify_all()

    def wait_for(self, *expected: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: set(expected) <= set(self.events), timeout=PATIENCE), self.events


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def watch(client: Cluster, namespace: str, told: Told) -> Iterator[ListWatch]:
    """Windows of one second, so that a test sees several."""
    selection = Selection(
        kind=CONFIG_MAP, namespace=namespace, labels="!ignored", fields="metadata.name!=kube-root-ca.crt"
    )
    watch = ListWatch(client, selection, told, clock=time.monotonic, random=lambda: 0.1, window=1)
    stopped = threading.Event()
    thread = threading.Thread(target=watch.run, args=(stopped.wait,), daemon=True)
    thread.start()
    yield watch
    stopped.set()
    watch.stop()
    thread.join(10)
    assert not thread.is_alive()


def test_watch_resumes_over_windows_without_a_repetition(
    control_plane: ControlPlane, client: Cluster, namespace: str, watch: ListWatch, told: Told
) -> None:
    since = control_plane.audit_mark()
    for count, name in enumerate("abc", start=1):
        client.create(CONFIG_MAP, config_map(name, namespace))
        told.wait_for(f"ADDED {name}")
        wait_until(functools.partial(_windows_reach, count, control_plane, since, namespace))
    a = ref(CONFIG_MAP, "a", namespace)
    client.patch(CONFIG_MAP, a, {"data": {"x": "1"}})
    client.delete(CONFIG_MAP, ref(CONFIG_MAP, "b", namespace))
    client.patch(CONFIG_MAP, a, {"metadata": {"labels": {"ignored": "yes"}}})
    told.wait_for("DELETED a")
    assert told.events == ["ADDED a", "ADDED b", "ADDED c", "MODIFIED a", "DELETED b", "DELETED a"]
    assert [body["metadata"]["name"] for body in watch.objects()] == ["c"]


def _windows_reach(count: int, control_plane: ControlPlane, since: int, namespace: str) -> bool:
    seen = control_plane.audit(since)
    return sum(1 for event in seen if event.verb == "watch" and namespace in event.uri) >= count


def test_list_watch_gets_over_an_outage(
    control_plane: ControlPlane, client: Cluster, namespace: str, watch: ListWatch, told: Told
) -> None:
    client.create(CONFIG_MAP, config_map("before", namespace))
    told.wait_for("ADDED before")
    with control_plane.outage():
        with pytest.raises(errors.Away):
            client.get(CONFIG_MAP, ref(CONFIG_MAP, "before", namespace))
        wait_until(lambda: watch.health.away_since is not None)
    client.create(CONFIG_MAP, config_map("after", namespace))
    told.wait_for("ADDED after")
    assert told.events == ["ADDED before", "ADDED after"]
    assert (watch.health.synced, watch.health.problem) == (True, None)


@pytest.mark.full("another restart of the API server; the outage stands for it, and 410 Gone in test_client.py")
def test_history_that_a_restarted_server_has_lost_is_gone(control_plane: ControlPlane, client: Cluster) -> None:
    with control_plane.outage():
        pass
    with pytest.raises(errors.Gone):
        list(client.watch(Selection(kind=CONFIG_MAP), resource_version="1", window=1))


def test_close_ends_a_silent_window_over_tls(client: Cluster, namespace: str) -> None:
    selection = Selection(kind=CONFIG_MAP, namespace=namespace)
    window = client.watch(selection, resource_version=client.list(selection).resource_version, window=290)
    client.create(CONFIG_MAP, config_map("a", namespace))
    seen = threading.Event()
    got: list[EventType] = []

    def read() -> None:
        for event in window:
            got.append(event.type)
            if event.body["metadata"]["name"] == "a":
                seen.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert seen.wait(10)
    window.close()
    reader.join(10)
    assert not reader.is_alive()
