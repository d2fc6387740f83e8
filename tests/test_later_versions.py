"""A kind that the cluster serves under a later version of its API: Cluster API's, as newer Ranchers list it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from support.rehearsals import inputs_of, prepared, template_set
from support.rendered_plans import Json, machine
from support.small_cluster import METADATA, node, world

from reconcile.observe.cached import CachedSource
from reconcile.observe.source import DirectSource, Source
from reconcile.probes.look import Group
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.embedded_client import EmbeddedClient
from renderer.model.ref import Ref

KINDS = template_set().catalog.kinds
FIRST, LATER = "cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"
MACHINES = Group(api_version=FIRST, kind="Machine", namespace="fleet-local")
REF = Ref(api_version=FIRST, kind="Machine", namespace="fleet-local", name="m-n1")


def later(body: Json) -> Json:
    return {**body, "apiVersion": LATER}


def cached(client: EmbeddedClient) -> Source:
    return CachedSource(client, KINDS, lambda ref: None)


def direct(client: EmbeddedClient) -> Source:
    return DirectSource(client, KINDS)


@pytest.mark.parametrize("make", [cached, direct])
@pytest.mark.parametrize("version", [FIRST, LATER])
def test_it_is_found_under_either(make: Callable[[EmbeddedClient], Source], version: str) -> None:
    cluster = EmbeddedCluster(SimulatedClock(datetime(2026, 1, 1, tzinfo=UTC)))
    cluster.seed([{**machine("m-n1", "n1"), "apiVersion": version}])
    source = make(cluster.client())
    found: Any = source.get(REF)
    assert (found["apiVersion"], found["metadata"]["name"]) == (version, "m-n1")
    assert source.list(MACHINES) == (found,)
    assert source.get(REF._replace(name="other")) is None
    if isinstance(source, CachedSource):
        source.stop()


def test_each_version_has_the_kinds_rule() -> None:
    assert [kind.api_version for kind in KINDS.served_as(FIRST, "Machine")] == [FIRST, LATER]
    assert KINDS.row(LATER, "Machine").ready == KINDS.row(FIRST, "Machine").ready


def test_the_loop_finds_the_nodes_machine_plan() -> None:
    """By the Machine alone: these nodes have no annotation that names it."""
    machines = [later(machine(f"m-{name}", name)) for name in ("n1", "n2")]
    found = world("n1", "n2", without=("Machine",), more=[node("n1"), node("n2")])
    found.scene.cluster.seed(machines)
    found.set_status(currentPhase="ClusterUpgraded", previousVersion="v1.7.1", releaseMetadata=METADATA)
    done = found.rounds()
    assert done.rendered
    assert [step.trigger.probe.target.ref.name for step in triggers(done.rendered)] == ["p-n1", "p-n2"]


def triggers(rendered: Any) -> list[Any]:
    steps = (item.step for phase in rendered.phases for item in phase.steps)
    return [step for step in steps if step.name == "PreDrain" and step.trigger]


@pytest.mark.slow
def test_a_rehearsal_of_such_a_cluster_succeeds() -> None:
    inputs = inputs_of("three-node")
    objects = tuple(
        replace(source, body=later(source.body)) if source.body["apiVersion"] == FIRST else source
        for source in inputs.objects
    )
    assert sum(source.body["apiVersion"] == LATER for source in objects) >= 3
    scene = prepared(replace(inputs, objects=objects))
    assert scene.play(lambda done: None).succeeded
