"""A user's objects become a cluster's, through the Protocol, with all that they say of themselves."""

from __future__ import annotations

from typing import Any

import pytest
from support.rendered_plans import EXAMPLES, inputs_of_example, render_example
from support.seeding import seed

from actors.playing import START
from reconcile.cluster.protocol import Selection
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.rehearsal.rehearsal import HARVESTER_NAMESPACES
from renderer.model.ref import ref_of


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES)
def test_everything_is_there_as_it_was_given(example: str) -> None:
    cluster, kinds = EmbeddedCluster(SimulatedClock(START)).client(), render_example(example).kinds
    bodies = [source.body for source in inputs_of_example(example).objects]
    assert seed(cluster, bodies, kinds) == ()
    for body in bodies:
        ref = ref_of(body)
        live = cluster.get(kinds.row(ref.api_version, ref.kind).kind, ref).body
        assert without_nothing(live.get("status") or {}) == without_nothing(body.get("status") or {}), ref
        assert within(body["metadata"].get("labels") or {}, live["metadata"].get("labels") or {})
        assert within(body.get("spec") or {}, live.get("spec") or {}), ref


def without_nothing(value: Any) -> Any:
    """A server leaves out what is empty."""
    if isinstance(value, dict):
        return {
            key: part
            for key, part in ((k, without_nothing(v)) for k, v in value.items())
            if part not in ({}, [], "", None)
        }
    return [without_nothing(part) for part in value] if isinstance(value, list) else value


def within(less: Any, more: Any) -> bool:
    if isinstance(less, dict):
        return all(key in more and within(part, more[key]) for key, part in less.items())
    if isinstance(less, list):
        return len(less) == len(more) and all(map(within, less, more))
    return bool(less == more)


def test_namespaces_that_every_harvester_has_are_made_and_unknown_kinds_told() -> None:
    cluster, kinds = EmbeddedCluster(SimulatedClock(START)).client(), render_example("three-node").kinds
    stranger = {"apiVersion": "x.example.com/v1", "kind": "Stranger", "metadata": {"name": "s"}}
    assert seed(cluster, [stranger], kinds) == (ref_of(stranger),)
    found = cluster.list(Selection(kind=kinds.row("v1", "Namespace").kind)).items
    assert set(HARVESTER_NAMESPACES) <= {body["metadata"]["name"] for body in found}


def test_what_another_server_wrote_is_left_behind_and_twice_is_once() -> None:
    cluster, kinds = EmbeddedCluster(SimulatedClock(START)).client(), render_example("three-node").kinds
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "gone"}
    metadata = {
        "name": "c",
        "namespace": "default",
        "uid": "theirs",
        "resourceVersion": "7",
        "ownerReferences": [owner],
        "finalizers": ["x.example.com/hold"],
    }
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}
    for _ in range(2):
        seed(cluster, [{"apiVersion": "v1", "kind": "List", "items": [body]}], kinds)
    (live,) = cluster.list(Selection(kind=kinds.row("v1", "ConfigMap").kind, namespace="default")).items
    assert live["data"] == {"a": "1"}
    assert live["metadata"]["uid"] != "theirs"
    assert not {"ownerReferences", "finalizers"} & set(live["metadata"])
