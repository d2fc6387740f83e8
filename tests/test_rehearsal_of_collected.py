"""A rehearsal of what was collected from a cluster: with the times of the API server, and without image lists."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.rehearsals import START, inputs_of, prepared

from reconcile.simulator.actors.simulation_log import SimulationEventType
from renderer.documents import Inputs
from renderer.model.ref import Body
from renderer.source_document import SourceDocument

CREATED = "2026-12-01T03:37:55Z"
"""After the day on which rehearsals begin otherwise."""


def collected(example: str) -> Inputs:
    found = inputs_of(example)
    return replace(found, objects=tuple(map(_as_collected, found.objects)), facts={})


def _as_collected(source: SourceDocument) -> SourceDocument:
    body: Body = {**source.body, "metadata": {**source.body["metadata"], "creationTimestamp": CREATED}}
    return replace(source, body=body)


@pytest.mark.slow
def test_nodes_of_a_young_cluster_are_none_that_join_and_what_starts_after_the_end_is_seen() -> None:
    """Without image lists nothing is cleaned up, and the plan ends before the machine that was stopped runs again."""
    scene = prepared(collected("three-node")).unchecked()
    assert scene.clock.now() > START
    done = scene.play(lambda done: None)
    assert done.succeeded
    stopped, started = (event for event in done.log.events if event.subject == "default/ledger-1")
    assert (stopped.what, started.what) == (SimulationEventType.VM_STOPPED, SimulationEventType.VM_STARTED)
    assert stopped.time < done.ended < started.time
    assert "NodeReplaced" not in {body.get("reason") for body in scene.cluster.store.everything()}
