"""The copies that watches keep, and what we have written ourselves before them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from controlplane.waiting import until
from support.rehearsals import template_set

from reconcile.observe.cached import CachedSource
from reconcile.observe.source import DirectSource
from reconcile.probes.look import Group, ReadFailure
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.embedded_client import EmbeddedClient
from renderer.model.ref import Body, ref_of

KINDS = template_set().catalog.kinds
JOB = KINDS.row("batch/v1", "Job").kind
CONTAINER = {"name": "one", "image": "one"}
BODY: Body = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "one", "namespace": "harvester-system"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}},
}
REF = ref_of(BODY)


@pytest.fixture
def client() -> EmbeddedClient:
    cluster = EmbeddedCluster(SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC)))
    cluster.seed([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "harvester-system"}}])
    return cluster.client()


@pytest.fixture
def source(client: EmbeddedClient) -> Iterator[CachedSource]:
    """Its watch has its first list, with nothing in it."""
    source = CachedSource(client, KINDS, lambda ref: None)
    assert source.get(REF) is None
    yield source
    source.stop()


def test_what_the_watch_has_brought_is_there(client: EmbeddedClient, source: CachedSource) -> None:
    written = client.create(JOB, BODY).body
    until("the watch brings it", lambda: source.get(REF) == written)


def test_an_answer_holds_until_its_object_changes(client: EmbeddedClient, source: CachedSource) -> None:
    """The list is put together once, whoever asks for it."""
    group = Group(api_version=REF.api_version, kind=REF.kind, labels=(("a", "b"),))
    labelled = {**BODY, "metadata": {**BODY["metadata"], "labels": {"a": "b"}}}
    client.create(JOB, labelled)
    until("the watch brings it", lambda: source.list(group) != ())
    first = source.list(group)
    assert isinstance(first, tuple)
    assert source.list(group) is first
    other = client.create(JOB, {**labelled, "metadata": {**labelled["metadata"], "name": "two"}}).body
    until("the watch brings the other", lambda: source.list(group) == (*first, other))
    client.delete(JOB, REF)
    until("the watch tells the first one's end", lambda: source.list(group) == (other,))
    client.delete(JOB, ref_of(other))
    other = client.create(JOB, {**labelled, "metadata": {**labelled["metadata"], "name": "two"}}).body
    until("the watch brings the one that was created again", lambda: source.get(ref_of(other)) == other)
    source.note({**other, "metadata": {**other["metadata"], "labels": {}, "resourceVersion": "999999"}})
    assert source.list(group) == ()


def test_an_answer_stands_before_the_copy(source: CachedSource) -> None:
    written = {**BODY, "metadata": {**BODY["metadata"], "resourceVersion": "999999"}}
    source.note(written)
    assert source.get(REF) == written


def test_an_answer_that_comes_after_the_objects_end_is_not_kept(client: EmbeddedClient, source: CachedSource) -> None:
    written = client.create(JOB, BODY).body
    until("the watch brings it", lambda: source.get(REF) is not None)
    client.delete(JOB, REF)
    until("the watch tells its end", lambda: source.get(REF) is None)
    source.note(written)
    assert source.get(REF) is None


def test_an_answer_that_is_older_than_the_copy_is_not_kept(client: EmbeddedClient, source: CachedSource) -> None:
    first = client.create(JOB, BODY).body
    second = client.patch(JOB, REF, {"metadata": {"labels": {"a": "b"}}}).body
    until("the watch brings it", lambda: source.get(REF) == second)
    source.note(first)
    assert source.get(REF) == second


def test_an_object_of_another_shape_is_named_until_it_is_right_or_gone() -> None:
    machine = {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Machine",
        "metadata": {"name": "m-1", "namespace": "fleet-local"},
        "status": {"nodeRef": "n1"},
    }
    cluster = EmbeddedCluster(SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC)))
    cluster.seed([machine])
    client, ref = cluster.client(), ref_of(machine)
    group = Group(api_version=ref.api_version, kind=ref.kind, namespace=ref.namespace)
    cached = CachedSource(client, KINDS, lambda ref: None)
    try:
        for source in (DirectSource(client, KINDS), cached):
            for found in (source.get(ref), source.list(group)):
                assert isinstance(found, ReadFailure)
                assert found.why == "Machine fleet-local/m-1: status.nodeRef: 'n1' is not a mapping"
                assert found.remedy == "correct it: kubectl edit machine m-1 -n fleet-local"
        client.patch(
            KINDS.row(ref.api_version, ref.kind).kind, ref, {"status": {"nodeRef": None}}, subresource="status"
        )
        until("the watch brings it", lambda: not isinstance(cached.list(group), ReadFailure))
        assert not isinstance(DirectSource(client, KINDS).get(ref), ReadFailure)
    finally:
        cached.stop()
