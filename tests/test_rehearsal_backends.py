"""What stands behind the embedded server: kubelets, Services, virtual machines."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from support.rbac import Rbac

from reconcile.cluster.errors import Away, BackendFailed, Conflict, Forbidden, NotFound
from reconcile.cluster.protocol import Cluster, Selection, permission
from reconcile.simulator.apiserver.clock import SimulatedClock
from reconcile.simulator.apiserver.cluster import EmbeddedCluster
from reconcile.simulator.apiserver.faults import ApiFault, InjectedApiFault
from renderer.model.ref import Kind, Ref

NODE = Kind(api_version="v1", kind="Node", plural="nodes", namespaced=False)
SERVICE = Kind(api_version="v1", kind="Service", plural="services", namespaced=True)
POD = Kind(api_version="v1", kind="Pod", plural="pods", namespaced=True)
MACHINE = Kind(
    api_version="subresources.kubevirt.io/v1", kind="VirtualMachine", plural="virtualmachines", namespaced=True
)
LIVE_MACHINE = Kind(api_version="kubevirt.io/v1", kind="VirtualMachine", plural="virtualmachines", namespaced=True)
INSTANCE = Kind(
    api_version="kubevirt.io/v1", kind="VirtualMachineInstance", plural="virtualmachineinstances", namespaced=True
)
CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)


def ref(kind: Kind, name: str) -> Ref:
    return Ref(api_version=kind.api_version, kind=kind.kind, namespace="default" if kind.namespaced else "", name=name)


def body(kind: Kind, name: str, **parts: Any) -> dict[str, Any]:
    namespace = {"namespace": "default"} if kind.namespaced else {}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name, **namespace}, **parts}


@pytest.fixture
def cluster() -> EmbeddedCluster:
    return EmbeddedCluster(SimulatedClock(datetime(2026, 11, 28, tzinfo=UTC)))


def test_a_kubelet_answers_through_its_node(cluster: EmbeddedCluster) -> None:
    def kubelet(asked: Ref, path: str, query: Mapping[str, str]) -> bytes:
        return f"{asked.name} {path} {dict(query)}".encode()

    cluster.seed([body(NODE, "n")])
    client = cluster.client()
    with pytest.raises(BackendFailed):
        client.read(NODE, ref(NODE, "n"), "proxy/stats/summary")
    cluster.backends.serve_read("Node", "proxy", kubelet)
    assert client.read(NODE, ref(NODE, "n"), "proxy/stats/summary", {"only": "x"}) == b"n stats/summary {'only': 'x'}"
    with pytest.raises(NotFound):
        client.read(NODE, ref(NODE, "nowhere"), "proxy/stats/summary")
    client.faults.add(InjectedApiFault(trouble=ApiFault.AWAY, verb="read", kind="Node"))
    with pytest.raises(Away):
        client.read(NODE, ref(NODE, "n"), "proxy/stats/summary")


@pytest.mark.parametrize("name", ["repo", "http:repo:80", "repo:80"])
def test_a_service_is_found_under_each_of_its_proxy_names(cluster: EmbeddedCluster, name: str) -> None:
    cluster.seed([body(SERVICE, "repo", spec={"ports": [{"port": 80}]})])
    cluster.backends.serve_read("Service", "proxy", lambda asked, path, query: path.encode())
    found = cluster.client().read(SERVICE, ref(SERVICE, name), "proxy/harvester-iso/harvester-release.yaml")
    assert found == b"harvester-iso/harvester-release.yaml"


def test_a_backend_needs_its_own_permission(cluster: EmbeddedCluster) -> None:
    cluster.seed([body(NODE, "n")])
    client = cluster.client(access=Rbac((), namespace="default", account="nobody"))
    with pytest.raises(Forbidden) as refused:
        client.read(NODE, ref(NODE, "n"), "proxy/stats/summary")
    assert refused.value.permission == permission("get", NODE, subresource="proxy", name="n")


@pytest.mark.parametrize(
    ("spec", "running", "verb", "expected"),
    [
        ({"runStrategy": "Halted"}, False, "start", {"spec": {"runStrategy": "Always"}}),
        ({"running": False}, False, "start", {"spec": {"running": True}}),
        ({"runStrategy": "Manual"}, False, "start", {"status": {"stateChangeRequests": [{"action": "Start"}]}}),
        ({"runStrategy": "Always"}, False, "start", "Always does not support manual start requests"),
        ({"runStrategy": "Halted"}, True, "start", "VM is already running"),
        ({"runStrategy": "Always"}, True, "stop", {"spec": {"runStrategy": "Halted"}}),
        ({"running": True}, True, "stop", {"spec": {"running": False}}),
        ({"runStrategy": "Always"}, False, "stop", "VM is not running"),
    ],
)
def test_a_virtual_machine_is_started_and_stopped(
    cluster: EmbeddedCluster, spec: dict[str, Any], running: bool, verb: str, expected: dict[str, Any] | str
) -> None:
    cluster.seed([body(LIVE_MACHINE, "vm", spec=spec)])
    if running:
        cluster.seed([body(INSTANCE, "vm", status={"phase": "Running"})])
    client = cluster.client()
    if isinstance(expected, str):
        with pytest.raises(Conflict, match=expected):
            client.put(MACHINE, ref(MACHINE, "vm"), verb)
        return
    assert client.put(MACHINE, ref(MACHINE, "vm"), verb).body == {}
    found = client.get(LIVE_MACHINE, ref(LIVE_MACHINE, "vm")).body
    assert {name: found.get(name) for name in expected} == expected


def test_a_stop_on_request_names_the_instance(cluster: EmbeddedCluster) -> None:
    cluster.seed([body(LIVE_MACHINE, "vm", spec={"runStrategy": "RerunOnFailure"})])
    cluster.seed([{**body(INSTANCE, "vm"), "metadata": {"name": "vm", "namespace": "default", "uid": "i-1"}}])
    client = cluster.client()
    client.put(MACHINE, ref(MACHINE, "vm"), "stop")
    found = client.get(LIVE_MACHINE, ref(LIVE_MACHINE, "vm")).body
    assert found["status"]["stateChangeRequests"] == [{"action": "Stop", "uid": "i-1"}]


def test_a_machine_that_is_not_there(cluster: EmbeddedCluster) -> None:
    with pytest.raises(NotFound):
        cluster.client().put(MACHINE, ref(MACHINE, "vm"), "start")


def test_a_pod_goes_when_its_grace_is_over(cluster: EmbeddedCluster) -> None:
    client = cluster.client()
    pod = body(POD, "p", spec={"nodeName": "n", "containers": [{"name": "c", "image": "i"}]})
    client.create(POD, pod)
    assert client.delete(POD, ref(POD, "p")).body["metadata"]["deletionGracePeriodSeconds"] == 30
    cluster.collect()
    client.get(POD, ref(POD, "p"))
    cluster.clock.advance(timedelta(seconds=30).total_seconds())
    cluster.collect()
    with pytest.raises(NotFound):
        client.get(POD, ref(POD, "p"))


def test_a_definition_takes_its_objects_with_it(cluster: EmbeddedCluster) -> None:
    kind = Kind(api_version="a.example.org/v1", kind="Thing", plural="things", namespaced=True)
    definitions = Kind(
        api_version="apiextensions.k8s.io/v1",
        kind="CustomResourceDefinition",
        plural="customresourcedefinitions",
        namespaced=False,
    )
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    names = {"kind": "Thing", "plural": "things"}
    spec = {"group": "a.example.org", "scope": "Namespaced", "names": names, "versions": [version]}
    client = cluster.client()
    client.create(definitions, body(definitions, "things.a.example.org", spec=spec))
    conditions = client.get(definitions, ref(definitions, "things.a.example.org")).body["status"]["conditions"]
    assert [(item["type"], item["status"]) for item in conditions] == [
        ("NamesAccepted", "True"),
        ("Established", "True"),
    ]
    client.create(kind, body(kind, "t"))
    start = client.list(Selection(kind=kind)).resource_version
    window = client.watch(Selection(kind=kind), resource_version=start, window=0)
    client.delete(definitions, ref(definitions, "things.a.example.org"))
    assert [str(event.type) for event in window] == ["DELETED"]


def test_writers_in_many_threads_lose_nothing(cluster: EmbeddedCluster) -> None:
    """Each thread counts up under the object's version, and tries again where another one was faster."""
    admin = cluster.client()
    admin.create(CONFIG_MAP, body(CONFIG_MAP, "c", data={"n": "0"}))

    def count(client: Cluster, times: int) -> None:
        while times:
            found = client.get(CONFIG_MAP, ref(CONFIG_MAP, "c")).body
            version, number = found["metadata"]["resourceVersion"], int(found["data"]["n"])
            change = {"metadata": {"resourceVersion": version}, "data": {"n": str(number + 1)}}
            try:
                client.patch(CONFIG_MAP, ref(CONFIG_MAP, "c"), change)
            except Conflict:
                continue
            times -= 1

    threads = [threading.Thread(target=count, args=(cluster.client(), 20)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert admin.get(CONFIG_MAP, ref(CONFIG_MAP, "c")).body["data"] == {"n": "100"}
