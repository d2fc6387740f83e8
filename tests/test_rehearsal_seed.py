"""Seeding with a user's own objects: what is kept, what is filled in, what is served for them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconcile.cluster.errors import Gone, Invalid, NoSuchKind
from reconcile.cluster.protocol import Selection
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.seeding import flattened, served_for
from renderer.model.document_type import FILES
from renderer.model.ref import Kind, ref_of

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path for path in (ROOT / "examples").iterdir() if (path / "nodes.yaml").exists())
NODE = Kind(api_version="v1", kind="Node", plural="nodes", namespaced=False)
NAMESPACE = Kind(api_version="v1", kind="Namespace", plural="namespaces", namespaced=False)


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster(SimulatedClock(datetime(2026, 11, 28, tzinfo=UTC)))


def node(number: int, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": {f"label-{i}": "x" for i in range(20)}, **metadata},
        "spec": {"podCIDR": "10.52.0.0/24"},
        "status": {
            "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": kind, "status": "True"} for kind in ("Ready", "DiskPressure", "PIDPressure")],
            "images": [{"names": [f"image-{i}:v1"], "sizeBytes": i} for i in range(50)],
            "nodeInfo": {"bootID": f"boot-{number}", "osImage": "Harvester v1.7.0", "kubeletVersion": "v1.34.2"},
        },
    }


def test_what_a_server_has_written_is_kept(cluster: EmbeddedCluster) -> None:
    claim = {"manager": "kubelet", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}
    given = node(
        1, uid="a-uid", resourceVersion="4711", creationTimestamp="2025-01-01T00:00:00Z", managedFields=[claim]
    )
    cluster.seed([given])
    found = cluster.client().get(NODE, ref_of(given)).body
    assert found == given
    written = cluster.client().patch(NODE, ref_of(given), {"metadata": {"labels": {"a": "b"}}}).body
    assert int(written["metadata"]["resourceVersion"]) > 4711


def test_what_no_server_has_seen_is_filled_in(cluster: EmbeddedCluster) -> None:
    cluster.seed([node(1)])
    found = cluster.client().get(NODE, ref_of(node(1))).body
    assert found["status"]["allocatable"] == {"cpu": "8", "memory": "16Gi", "pods": "110"}
    assert set(found["metadata"]) >= {"uid", "resourceVersion", "creationTimestamp"}


def test_a_list_counts_as_its_items_and_namespaces_are_made(cluster: EmbeddedCluster) -> None:
    items = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "somewhere"}}]
    cluster.seed([{"apiVersion": "v1", "kind": "List", "items": items}])
    names = [body["metadata"]["name"] for body in cluster.client().list(Selection(kind=NAMESPACE)).items]
    assert "somewhere" in names


def test_a_kind_that_nobody_defined_is_served_open(cluster: EmbeddedCluster) -> None:
    kind = Kind(api_version="ceph.rook.io/v1", kind="CephCluster", plural="another-plural", namespaced=True)
    client = cluster.client()
    with pytest.raises(NoSuchKind):
        client.list(Selection(kind=kind))
    body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "c", "namespace": "rook"}}
    cluster.seed([{**body, "spec": {"a": 1}, "status": {"b": 2}}])
    written = client.patch(kind, ref_of(body), {"spec": {"any": {"thing": True}}}).body
    assert written["spec"] == {"a": 1, "any": {"thing": True}}
    assert written["status"] == {"b": 2}


def test_a_field_that_our_schema_lacks_is_kept(cluster: EmbeddedCluster) -> None:
    body = {
        "apiVersion": "upgrade.cattle.io/v1",
        "kind": "Plan",
        "metadata": {"name": "p", "namespace": "cattle-system"},
        "spec": {"upgrade": {"image": "x"}},
        "brandNew": {"field": 1},
    }
    cluster.seed([body])
    kind = Kind(api_version="upgrade.cattle.io/v1", kind="Plan", plural="plans", namespaced=True)
    client = cluster.client()
    client.patch(kind, ref_of(body), {"spec": {"concurrency": 1}})
    labelled = {"name": "p", "namespace": "cattle-system", "labels": {"a": "b"}}
    client.apply(kind, {"apiVersion": "upgrade.cattle.io/v1", "kind": "Plan", "metadata": labelled})
    assert client.get(kind, ref_of(body)).body["brandNew"] == {"field": 1}


def test_an_object_that_does_not_fit_is_named(cluster: EmbeddedCluster) -> None:
    with pytest.raises(Invalid, match="Node node-1"):
        cluster.seed([{**node(1), "status": ["not", "a", "map"]}])


def test_owners_outside_of_the_seed_are_presumed_to_live(cluster: EmbeddedCluster) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "elsewhere", "uid": "not-here"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    cluster.seed([pod])
    assert cluster.collect() == 0


def test_no_watch_can_go_back_to_before_the_seed(cluster: EmbeddedCluster) -> None:
    client = cluster.client()
    before = client.list(Selection(kind=NODE)).resource_version
    cluster.seed([node(1, uid="u", resourceVersion="90000")])
    with pytest.raises(Gone):
        client.watch(Selection(kind=NODE), resource_version=before, window=0)


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=[path.name for path in EXAMPLES])
def test_every_example_can_be_seeded_and_written_to(cluster: EmbeddedCluster, example: Path) -> None:
    cluster.seed(documents(example))
    client = cluster.client()
    for body in flattened(documents(example)):
        kind, ref = served_for(cluster.registry, body).kind, ref_of(body)
        found = client.get(kind, ref).body
        written = client.patch(kind, ref, {"metadata": {"annotations": {"rehearsed": "yes"}}}).body
        assert {**found, "metadata": 0} == {**written, "metadata": 0}, f"a write to {ref} changed more than it said"


def documents(example: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(example.glob("*.yaml")):
        bodies = yaml.safe_load_all(file.read_text(encoding="utf-8"))
        yield from (body for body in bodies if body and "kind" in body and body["apiVersion"] != FILES)


@pytest.mark.slow
def test_a_thousand_nodes_are_listed_in_order_and_in_two_pages(cluster: EmbeddedCluster) -> None:
    cluster.seed(node(number) for number in range(1000))
    client = cluster.client()
    names = [body["metadata"]["name"] for body in client.list(Selection(kind=NODE)).items]
    assert names == sorted(f"node-{number}" for number in range(1000))
    assert client.log.counts() == {("list", "Node"): 2}
