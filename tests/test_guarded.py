"""A guarded client asks before each write, and before nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from support.rehearsals import START, template_set

from reconcile.cluster.client import Client
from reconcile.cluster.exchange import Exchange, Request
from reconcile.cluster.protocol import Cluster, Permission, Selection
from reconcile.loop.lease import LostLease
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from renderer.model.ref import Body, ref_of

KIND = template_set().catalog.kinds.row("v1", "ConfigMap").kind
MAP: Body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "default"}, "data": {}}
REF = ref_of(MAP)


class SentError(Exception):
    """A request would have left."""


class Wire:
    def open(self, request: Request) -> Exchange:
        raise SentError


def refuse() -> None:
    raise LostLease


def embedded() -> Cluster:
    cluster = EmbeddedCluster(SimulatedClock(START))
    cluster.seed([MAP])
    return cluster.client().guarded(refuse)


def over_http() -> Cluster:
    return Client(Wire()).guarded(refuse)


WRITES: list[Callable[[Cluster], object]] = [
    lambda cluster: cluster.create(KIND, MAP),
    lambda cluster: cluster.apply(KIND, MAP, dry_run=True),
    lambda cluster: cluster.patch(KIND, REF, {"data": {"a": "b"}}),
    lambda cluster: cluster.json_patch(KIND, REF, [{"op": "add", "path": "/data/a", "value": "b"}]),
    lambda cluster: cluster.delete(KIND, REF),
    lambda cluster: cluster.put(KIND, REF, "start"),
]
READS: list[Callable[[Cluster], object]] = [
    lambda cluster: cluster.get(KIND, REF),
    lambda cluster: cluster.list(Selection(kind=KIND)),
    lambda cluster: cluster.review(Permission(verb="get", group="", resource="configmaps")),
]


@pytest.mark.parametrize("made", [embedded, over_http])
@pytest.mark.parametrize("write", WRITES)
def test_no_write_passes(made: Callable[[], Cluster], write: Callable[[Cluster], object]) -> None:
    with pytest.raises(LostLease):
        write(made())


@pytest.mark.parametrize("read", READS)
def test_reads_pass(read: Callable[[Cluster], object]) -> None:
    assert read(embedded()) is not None
    with pytest.raises(SentError):
        read(over_http())
