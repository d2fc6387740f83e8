"""The control plane that tests run on is what it claims to be, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from controlplane import binaries, cluster, crds, processes, waiting
from controlplane.api import Api, ApiError
from controlplane.cluster import ControlPlane

TESTS = Path(__file__).resolve().parent
CRD_FOLDER = TESTS.parent / "schemas" / "crds"
POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "example/nothing:1"}]}


@pytest.fixture
def namespace(control_plane: ControlPlane, request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own, left to the end of the session."""
    name = request.node.name.removeprefix("test_").replace("_", "-")[:63].strip("-")
    control_plane.api.create("/api/v1/namespaces", {"metadata": {"name": name}})
    account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
    waiting.until("default service account", lambda: found(control_plane.api, account))
    return str(name)


def found(api: Api, path: str) -> Any:
    try:
        return api.get(path)
    except ApiError as error:
        if error.code == 404:
            return None
        raise


def test_runs_the_pinned_versions(control_plane: ControlPlane) -> None:
    versions = json.loads(control_plane.kubectl("version", "--output=json").stdout)
    assert versions["serverVersion"]["gitVersion"] == "v1.35.4"
    assert versions["clientVersion"]["gitVersion"].startswith("v1.35.")
    assert binaries.etcd_version() == "3.6.15"


def test_has_the_namespaces_of_a_harvester_cluster(control_plane: ControlPlane) -> None:
    names = {item["metadata"]["name"] for item in control_plane.api.get("/api/v1/namespaces")["items"]}
    assert names >= {"harvester-system", "cattle-system", "fleet-local", "longhorn-system"}


@pytest.mark.parametrize("file", sorted(CRD_FOLDER.rglob("*.yaml")), ids=lambda file: file.stem)
def test_serves_every_definition(control_plane: ControlPlane, file: Path) -> None:
    spec = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)["spec"]
    for version in spec["versions"]:
        listed = control_plane.api.get(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
        assert listed["kind"] == spec["names"].get("listKind", f"{spec['names']['kind']}List")


def test_says_why_a_definition_is_refused(control_plane: ControlPlane, tmp_path: Path) -> None:
    names = {"plural": "things", "singular": "thing", "kind": "Thing"}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"x-kubernetes-int-or-string": False}}}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.org"},
        "spec": {"group": "example.org", "scope": "Cluster", "names": names, "versions": [version]},
    }
    (tmp_path / "things.yaml").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(crds.CrdError, match=r"things\.yaml: .*properties\[spec\]\.type: Required"):
        crds.install(control_plane.api, tmp_path)


def test_a_job_completes_when_its_pod_has_succeeded(control_plane: ControlPlane, namespace: str) -> None:
    api = control_plane.api
    jobs, pods = f"/apis/batch/v1/namespaces/{namespace}/jobs", f"/api/v1/namespaces/{namespace}/pods"
    api.create(jobs, {"metadata": {"name": "once"}, "spec": {"backoffLimit": 0, "template": {"spec": POD}}})
    pod = waiting.until("pod of the job", lambda: api.get(pods)["items"])[0]["metadata"]["name"]
    assert "conditions" not in api.get(f"{jobs}/once")["status"]

    api.patch(f"{pods}/{pod}/status", {"status": {"phase": "Succeeded"}})

    assert waiting.until("Complete", lambda: "Complete" in conditions(api.get(f"{jobs}/once")))


def conditions(thing: Mapping[str, Any]) -> set[str]:
    return {c["type"] for c in thing["status"].get("conditions", ()) if c["status"] == "True"}


def test_a_deployment_is_available_when_its_pod_is_ready(control_plane: ControlPlane, namespace: str) -> None:
    api = control_plane.api
    deployments, pods = f"/apis/apps/v1/namespaces/{namespace}/deployments", f"/api/v1/namespaces/{namespace}/pods"
    labels = {"app": "repo"}
    template = {"metadata": {"labels": labels}, "spec": POD | {"restartPolicy": "Always"}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    api.create(deployments, {"metadata": {"name": "repo"}, "spec": spec})
    service = {"selector": labels, "ports": [{"port": 80}]}
    api.create(f"/api/v1/namespaces/{namespace}/services", {"metadata": {"name": "repo"}, "spec": service})
    pod = waiting.until("pod of the deployment", lambda: api.get(pods)["items"])[0]["metadata"]["name"]
    api.create_if_absent("/api/v1/nodes", {"metadata": {"name": "node-1"}})
    api.create(f"{pods}/{pod}/binding", {"metadata": {"name": pod}, "target": {"kind": "Node", "name": "node-1"}})

    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    status = {"phase": "Running", "podIP": "10.52.0.7", "podIPs": [{"ip": "10.52.0.7"}], "conditions": [ready]}
    api.patch(f"{pods}/{pod}/status", {"status": status})

    assert waiting.until("Available", lambda: "Available" in conditions(api.get(f"{deployments}/repo")))
    slices = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
    assert waiting.until("endpoint", lambda: addresses(api.get(slices))) == ["10.52.0.7"]


def addresses(slices: Mapping[str, Any]) -> list[str]:
    endpoints = [endpoint for item in slices["items"] for endpoint in item["endpoints"] or ()]
    return [address for e in endpoints if e["conditions"]["ready"] for address in e["addresses"]]


def test_what_belongs_to_a_deleted_owner_is_collected(control_plane: ControlPlane, namespace: str) -> None:
    api, maps = control_plane.api, f"/api/v1/namespaces/{namespace}/configmaps"
    owner = api.create(maps, {"metadata": {"name": "owner"}})["metadata"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["uid"]}
    api.create(maps, {"metadata": {"name": "owned", "ownerReferences": [reference]}})
    api.create(maps, {"metadata": {"name": "free"}})

    api.delete(f"{maps}/owner")

    assert waiting.until("collected", lambda: found(api, f"{maps}/owned") is None)
    assert found(api, f"{maps}/free")


def test_a_service_account_may_do_what_it_was_granted_only(control_plane: ControlPlane, namespace: str) -> None:
    kubeconfig = control_plane.service_account_kubeconfig(namespace, "reader")
    refused = control_plane.kubectl("get", "configmaps", "-n", namespace, kubeconfig=kubeconfig, check=False)
    assert f'User "system:serviceaccount:{namespace}:reader" cannot list resource "configmaps"' in refused.stderr

    account = f"--serviceaccount={namespace}:reader"
    control_plane.kubectl("create", "rolebinding", "reader", "--clusterrole=view", account, "-n", namespace)

    control_plane.kubectl("get", "configmaps", "-n", namespace, kubeconfig=kubeconfig)
    written = control_plane.kubectl("create", "cm", "x", "-n", namespace, kubeconfig=kubeconfig, check=False)
    assert "forbidden" in written.stderr


def test_the_audit_log_tells_what_was_asked_and_answered(control_plane: ControlPlane, namespace: str) -> None:
    user = f"system:serviceaccount:{namespace}:default"
    api = control_plane.api_as(control_plane.service_account_token(namespace, "default"))
    maps = f"/api/v1/namespaces/{namespace}/configmaps"
    body = {"metadata": {"name": "x"}, "data": {"a": "1"}}
    mark = control_plane.audit_mark()

    with pytest.raises(ApiError, match="forbidden"):
        api.create(f"{maps}?dryRun=All", body)
    control_plane.api.create(maps, body)

    (refused,) = control_plane.audit(since=mark, user=user)
    assert (refused.verb, refused.resource, refused.namespace, refused.code) == ("create", "configmaps", namespace, 403)
    assert refused.uri.endswith("?dryRun=All")
    (created,) = control_plane.audit(since=mark, user="admin")
    assert (created.user, created.code, created.body["data"]) == ("admin", 201, {"a": "1"})


def test_wiping_removes_what_came_since_the_start(wiped_control_plane: ControlPlane) -> None:
    api = wiped_control_plane.api
    stuck = {"metadata": {"name": "stuck", "finalizers": ["example.org/nobody"]}}
    api.create("/api/v1/namespaces/harvester-system/configmaps", stuck)
    api.create("/api/v1/nodes", {"metadata": {"name": "node-2"}})
    addons = "/apis/harvesterhci.io/v1beta1/namespaces/kube-system/addons"
    chart = {"enabled": False, "repo": "r", "chart": "c", "version": "1", "valuesContent": ""}
    addon = {"apiVersion": "harvesterhci.io/v1beta1", "kind": "Addon", "metadata": {"name": "left"}, "spec": chart}
    api.create(addons, addon)
    api.create("/api/v1/namespaces", {"metadata": {"name": "wiped"}})
    api.create("/api/v1/namespaces/wiped/configmaps", stuck)
    before = api.get("/api/v1/namespaces/harvester-system")["metadata"]["uid"]

    wiped_control_plane.wipe()

    assert found(api, "/api/v1/namespaces/harvester-system/configmaps/stuck") is None
    assert found(api, "/api/v1/nodes/node-2") is None
    assert found(api, f"{addons}/left") is None
    assert found(api, "/api/v1/namespaces/wiped") is None
    assert api.get("/api/v1/namespaces/harvester-system")["metadata"]["uid"] == before


def test_what_was_seeded_counts_as_changed_for_what_others_write_and_not_for_the_servers(
    wiped_control_plane: ControlPlane,
) -> None:
    """A server that was restarted makes a Lease anew and renews it, after which everything was seeded for each test."""
    api = wiped_control_plane.api
    leases, maps = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases", "/api/v1/namespaces/default/configmaps"
    api.create(leases, {"metadata": {"name": "apiserver-x"}, "spec": {"holderIdentity": "x"}})
    api.create(maps, {"metadata": {"name": "seeded"}, "data": {"a": "1"}})
    seeded = wiped_control_plane.snapshot()
    api.patch(f"{leases}/apiserver-x", {"spec": {"holderIdentity": "y"}})
    assert wiped_control_plane.still_has(seeded)
    api.patch(f"{maps}/seeded", {"data": {"a": "2"}})
    assert not wiped_control_plane.still_has(seeded)


@pytest.mark.controlplane
@pytest.mark.full("a control plane of its own, to its end; the tests of outages on the shared one stand for it")
def test_an_outage_ends_at_the_same_address_and_the_end_leaves_nothing(control_plane: ControlPlane) -> None:
    with cluster.running(built(), ()) as plane:
        api = plane.api
        api.create("/api/v1/namespaces", {"metadata": {"name": "kept"}})
        with plane.outage(), pytest.raises(OSError, match="refused"):
            api.get("/version")
        assert found(api, "/api/v1/namespaces/kept")
        pids, folder = tuple(plane.pids.values()), plane.workdir
        assert len(pids) == 3
        assert all(alive(pid) for pid in pids)
    assert not any(alive(pid) for pid in pids)
    assert not folder.exists()
    assert alive(control_plane.pids["etcd"])


def built() -> binaries.Binaries:
    here = binaries.built()
    assert here is not None
    return here


@pytest.fixture
def process(control_plane: ControlPlane) -> Iterator[subprocess.Popen[str]]:
    """`python -m controlplane`, as a developer starts it; the fixture is asked for so that all is built."""
    with subprocess.Popen(
        [sys.executable, "-m", "controlplane"],
        env=os.environ | {"PYTHONPATH": os.fspath(TESTS)},
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as running:
        yield running
        running.kill()


@pytest.mark.full("a control plane whose process is killed; the one that Ctrl-C ends stands for it")
def test_nothing_outlives_a_run_that_was_killed(process: subprocess.Popen[str]) -> None:
    pids = pids_when(process, started="kube-controller-manager")
    workdir = Path(f"/proc/{pids[0]}/cwd").readlink()
    assert len(pids) == 3

    process.kill()

    waiting.until("children gone", lambda: not any(alive(pid) for pid in pids))
    assert workdir in processes.sweep()
    assert not workdir.exists()


def test_ctrl_c_during_the_start_takes_everything_down(process: subprocess.Popen[str]) -> None:
    pids = pids_when(process, started="kube-apiserver")
    workdir = Path(f"/proc/{pids[0]}/cwd").readlink()
    assert len(pids) == 2

    process.send_signal(signal.SIGINT)

    assert process.wait(timeout=waiting.PATIENCE) == 130
    assert not any(alive(pid) for pid in pids)
    assert not workdir.exists()


def pids_when(process: subprocess.Popen[str], started: str) -> list[int]:
    """Reads `started NAME, pid NUMBER` until the named server is there."""
    pids: list[int] = []
    for line in process.stdout or ():
        if line.startswith("started "):
            pids.append(int(line.split()[-1]))
        if line.startswith(f"started {started},"):
            break
    return pids


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
