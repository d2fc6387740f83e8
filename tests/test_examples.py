"""Every example could have come from one cluster: it parses, its objects are valid, and they fit together."""

from __future__ import annotations

import functools
import ipaddress
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from schemas.strict import refused
from support.answer_schemas import validator

from renderer.cli.program import run
from renderer.documents import plan_of, recognize
from renderer.model.document_type import FACTS
from renderer.model.ref import Body, ref_of
from renderer.yaml_io import parse

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path.parent for path in ROOT.glob("examples/*/upgradeplan.yaml"))
MACHINE_PLAN = "rke.cattle.io/machine-plan"
WITNESS = "node-role.harvesterhci.io/witness"
ADDED_BY_THE_SERVER = {"uid", "resourceVersion", "creationTimestamp", "managedFields", "ownerReferences"}
DOCUMENTATION = [ipaddress.ip_network(net) for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")]
IMAGE_LOAD_BYTES = 13 * 1024**3  # what an upgrade's images take on a node


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    folder: Path
    objects: tuple[Body, ...]
    release: Mapping[str, Any]
    facts: Mapping[str, Any]

    def of(self, api_group: str, kind: str) -> dict[str, Body]:
        """Objects of one kind by name; `api_group` is empty for the core group."""
        found = [body for body in self.objects if body["kind"] == kind and _group(body) == api_group]
        return {body["metadata"]["name"]: body for body in found}

    @property
    def plan(self) -> Body:
        (plan,) = self.of("management.harvesterhci.io", "UpgradePlan").values()
        return plan

    @property
    def nodes(self) -> dict[str, Body]:
        return self.of("", "Node")

    @property
    def previous_version(self) -> str:
        return str(self.of("harvesterhci.io", "Setting")["server-version"]["value"])


def _group(body: Body) -> str:
    return ref_of(body).api_version.rpartition("/")[0]


def _name(body: Body) -> str:
    """With the apiVersion, since there are two kinds each of the names Cluster and Setting."""
    return f"{body['apiVersion']} {ref_of(body)}"


@functools.cache
def _load(folder: Path) -> Example:
    files = sorted(folder.glob("*.yaml"))
    documents = [document for path in files for document in parse(path.read_text(encoding="utf-8"), str(path))]
    inputs, problems = recognize(documents)
    assert problems == ()
    assert inputs.release is not None
    objects = (plan_of(inputs), *inputs.objects)
    return Example(
        folder=folder,
        objects=tuple(source.body for source in objects),
        release=inputs.release.body,
        facts=inputs.facts,
    )


def _crds() -> dict[tuple[str, str], Body]:
    files = [*ROOT.glob("schemas/crds/*.yaml"), *ROOT.glob("schemas/crds/third-party/*.yaml")]
    crds = [document.value for path in files for document in parse(path.read_text(encoding="utf-8"), str(path))]
    return {
        (f"{crd['spec']['group']}/{version['name']}", crd["spec"]["names"]["kind"]): crd
        for crd in crds
        for version in crd["spec"]["versions"]
    }


CRDS = _crds()
BUILT_IN = json.loads((ROOT / "schemas/kubernetes/v1.35.json").read_text(encoding="utf-8"))


def _refused_fields(body: Body) -> tuple[str, ...]:
    crd = CRDS.get((body["apiVersion"], body["kind"]))
    if crd is not None:
        return refused(crd, body)
    schema = {**BUILT_IN, "$ref": BUILT_IN["kinds"][f"{body['apiVersion']} {body['kind']}"]}
    return tuple(sorted(error.json_path for error in Draft202012Validator(schema).iter_errors(body)))


@pytest.fixture(params=EXAMPLES, ids=lambda path: path.name)
def example(request: pytest.FixtureRequest) -> Example:
    return _load(request.param)


def test_the_examples_of_the_readme_are_there() -> None:
    text = (ROOT / "examples/README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^\| \[(\S+)\]\(\1\)", text, re.MULTILINE)) == [folder.name for folder in EXAMPLES]


def test_the_readme_says_what_it_shows_and_how_to_render_it(example: Example) -> None:
    text = (example.folder / "README.md").read_text(encoding="utf-8")
    assert re.search(rf"^upgradeplan render examples/{re.escape(example.folder.name)} .*--output-dir DIR$", text, re.M)


def test_objects_are_valid(example: Example) -> None:
    found = {_name(body): _refused_fields(body) for body in example.objects}
    assert {name: fields for name, fields in found.items() if fields} == {}


@pytest.mark.parametrize("name", ["release", "facts"])
def test_what_is_no_object_is_valid_too(example: Example, name: str) -> None:
    document = {"release": example.release, "facts": FACTS.document({"facts": example.facts})}[name]
    assert [error.json_path for error in validator(name).iter_errors(document)] == []


def test_namespaces_stand_where_the_kind_has_them(example: Example) -> None:
    scopes = {key: crd["spec"]["scope"] == "Namespaced" for key, crd in CRDS.items()}
    scopes |= {("v1", "Node"): False, ("v1", "Namespace"): False, ("storage.k8s.io/v1", "StorageClass"): False}
    wrong = [
        _name(body)
        for body in example.objects
        if bool(ref_of(body).namespace) != scopes.get((body["apiVersion"], body["kind"]), True)
    ]
    assert wrong == []


def test_nothing_of_the_server_is_left_in(example: Example) -> None:
    """A uid or an owner from another cluster would make garbage collection take the object away."""
    assert [_name(body) for body in example.objects if ADDED_BY_THE_SERVER & set(body["metadata"])] == []


def test_a_generation_is_the_first_and_observed(example: Example) -> None:
    """A server counts from 1 again; a higher observed generation would make a later change look observed."""
    assert {body["metadata"].get("generation", 1) for body in example.objects} == {1}
    assert {body.get("status", {}).get("observedGeneration", 1) for body in example.objects} == {1}


def test_no_secret_carries_data(example: Example) -> None:
    secrets = example.of("", "Secret")
    assert secrets
    assert [name for name, secret in secrets.items() if set(secret) - {"apiVersion", "kind", "metadata", "type"}] == []


def test_addresses_are_from_the_documentation_ranges(example: Example) -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in sorted(example.folder.glob("*.yaml")))
    addresses = {ipaddress.ip_address(found) for found in re.findall(r"(?<![\w.-])\d+(?:\.\d+){3}(?![\w.+-])", text)}
    assert addresses
    assert {str(ip) for ip in addresses if not any(ip in net for net in DOCUMENTATION)} == set()


def test_nodes_machines_and_plan_secrets_belong_to_each_other(example: Example) -> None:
    machines = example.of("cluster.x-k8s.io", "Machine")
    secrets = [secret for secret in example.of("", "Secret").values() if secret["type"] == MACHINE_PLAN]
    by_node = {
        name: node["metadata"]["annotations"]["cluster.x-k8s.io/machine"] for name, node in example.nodes.items()
    }
    assert {machine["status"]["nodeRef"]["name"]: name for name, machine in machines.items()} == by_node
    assert sorted(secret["metadata"]["labels"]["rke.cattle.io/machine-name"] for secret in secrets) == sorted(machines)
    assert {secret["metadata"]["name"] for secret in secrets} == {f"{name}-machine-plan" for name in machines}


def test_every_node_is_managed_ready_and_reachable(example: Example) -> None:
    for node in example.nodes.values():
        assert node["metadata"]["labels"]["harvesterhci.io/managed"] == "true"
        internal = {"type": "InternalIP", "address": node["metadata"]["annotations"]["rke2.io/internal-ip"]}
        assert internal in node["status"]["addresses"]
        assert [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"] == ["True"]
        assert node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"] == 10250


def test_boot_ids_differ(example: Example) -> None:
    boots = [node["status"]["nodeInfo"]["bootID"] for node in example.nodes.values()]
    assert len(set(boots)) == len(example.nodes)


def test_one_version_is_installed(example: Example) -> None:
    infos = [node["status"]["nodeInfo"] for node in example.nodes.values()]
    cluster = example.of("provisioning.cattle.io", "Cluster")["local"]
    charts = example.of("management.cattle.io", "ManagedChart")
    assert {info["osImage"] for info in infos} == {f"Harvester {example.previous_version}"}
    assert {info["kubeletVersion"] for info in infos} == {cluster["spec"]["kubernetesVersion"]}
    installed = {charts[name]["spec"]["version"] for name in ("harvester", "harvester-crd")}
    assert installed == {example.previous_version.removeprefix("v")}


def test_the_cluster_is_ready_for_an_upgrade(example: Example) -> None:
    clusters = example.of("provisioning.cattle.io", "Cluster"), example.of("cluster.x-k8s.io", "Cluster")
    assert clusters[0]["local"]["status"]["ready"] is True
    assert clusters[1]["local"]["status"]["phase"] == "Provisioned"
    assert {machine["status"]["phase"] for machine in example.of("cluster.x-k8s.io", "Machine").values()} == {"Running"}
    assert example.of("kubevirt.io", "KubeVirt")["kubevirt"]["status"]["phase"] == "Deployed"
    for chart in example.of("management.cattle.io", "ManagedChart").values():
        assert [c["status"] for c in chart["status"]["conditions"] if c["type"] == "Ready"] == ["True"]
    for addon in example.of("harvesterhci.io", "Addon").values():
        settled = "AddonDeploySuccessful" if addon["spec"]["enabled"] else "AddonDisabled"
        assert addon["status"]["status"] == settled


def test_the_release_is_another_one(example: Example) -> None:
    version, kubernetes = example.release["harvester"], example.release["kubernetes"]
    assert example.release["os"] == f"Harvester {version}"
    assert version != example.previous_version
    assert kubernetes not in {node["status"]["nodeInfo"]["kubeletVersion"] for node in example.nodes.values()}


def test_the_plan_names_what_is_there(example: Example) -> None:
    spec = example.plan["spec"]
    assert ("version" in spec) != ("image" in spec)
    if "version" in spec:
        assert spec["version"] == example.release["harvester"]
        assert spec["version"] in example.of("harvesterhci.io", "Version")
    else:
        assert spec["image"] in example.of("harvesterhci.io", "VirtualMachineImage")
    assert set(spec.get("nodeUpgradeOption", {}).get("pauseNodes", ())) <= set(example.nodes)


def test_virtual_machines_run_on_nodes_that_carry_them(example: Example) -> None:
    machines = example.of("kubevirt.io", "VirtualMachine")
    instances = example.of("kubevirt.io", "VirtualMachineInstance")
    carrying = {name for name, node in example.nodes.items() if WITNESS not in node["metadata"]["labels"]}
    assert set(instances) == {name for name, machine in machines.items() if machine["status"].get("created")}
    for instance in instances.values():
        assert instance["status"]["nodeName"] == instance["metadata"]["labels"]["kubevirt.io/nodeName"]
        assert instance["status"]["nodeName"] in carrying


def test_volumes_of_virtual_machines_are_attached_where_these_run(example: Example) -> None:
    attached = {
        volume["status"]["kubernetesStatus"]["pvcName"]: volume["status"]["currentNodeID"]
        for volume in example.of("longhorn.io", "Volume").values()
        if volume["status"]["state"] == "attached"
    }
    for instance in example.of("kubevirt.io", "VirtualMachineInstance").values():
        claims = [volume["persistentVolumeClaim"]["claimName"] for volume in instance["spec"]["volumes"]]
        assert {attached[claim] for claim in claims} == {instance["status"]["nodeName"]}


def test_attached_volumes_are_healthy_and_have_room_for_their_replicas(example: Example) -> None:
    volumes = example.of("longhorn.io", "Volume").values()
    carrying = [name for name, node in example.nodes.items() if WITNESS not in node["metadata"]["labels"]]
    attached = [volume for volume in volumes if volume["status"]["state"] == "attached"]
    assert {volume["status"]["robustness"] for volume in attached} == {"healthy"}
    assert {volume["spec"]["numberOfReplicas"] for volume in volumes} == {len(carrying)}


def test_facts_speak_of_every_node_and_of_every_api_server(example: Example) -> None:
    (endpoints,) = example.of("discovery.k8s.io", "EndpointSlice").values()
    addresses = [address for endpoint in endpoints["endpoints"] for address in endpoint["addresses"]]
    control_planes = [
        node["metadata"]["annotations"]["rke2.io/internal-ip"]
        for node in example.nodes.values()
        if "node-role.kubernetes.io/control-plane" in node["metadata"]["labels"]
    ]
    assert set(example.facts) <= {"kubelet", "certificates", "imageLists"}
    assert list(example.facts["kubelet"]) == list(example.nodes)
    assert list(example.facts["certificates"]) == addresses == control_planes


def test_disks_have_room_for_the_new_images(example: Example) -> None:
    for kubelet in example.facts["kubelet"].values():
        disk = kubelet["fs"]
        assert disk["usedBytes"] + disk["availableBytes"] < disk["capacityBytes"]
        projected = (disk["usedBytes"] + IMAGE_LOAD_BYTES) * 100 / disk["capacityBytes"]
        assert projected <= kubelet["imageGCHighThresholdPercent"]


def test_image_lists_share_keep_and_drop_images(example: Example) -> None:
    lists = example.facts.get("imageLists")
    if lists is None:
        assert example.folder.name == "three-node-v1.6.1"  # the one that shows what is pending then
        return
    dropped = set(lists["previous"]) - set(lists["current"])
    assert set(lists["previous"]) & set(lists["current"])
    assert f"docker.io/rancher/harvester:{example.previous_version}" in dropped
    assert f"docker.io/rancher/harvester-upgrade:{example.previous_version}" in dropped  # but on the list of those kept


def _example(name: str) -> Example:
    return _load(ROOT / "examples" / name)


def test_the_witness_is_marked_and_tainted() -> None:
    witnesses = [node for node in _example("two-node-witness").nodes.values() if WITNESS in node["metadata"]["labels"]]
    assert [node["metadata"]["labels"][WITNESS] for node in witnesses] == ["true"]
    assert witnesses[0]["spec"]["taints"] == [
        {"effect": "NoExecute", "key": "node-role.kubernetes.io/etcd", "value": "true"}
    ]


def test_the_paused_node_has_a_machine_that_cannot_move() -> None:
    example = _example("paused-node")
    (paused,) = example.plan["spec"]["nodeUpgradeOption"]["pauseNodes"]
    (stuck,) = [
        instance
        for instance in example.of("kubevirt.io", "VirtualMachineInstance").values()
        if "hostDevices" in instance["spec"]["domain"]["devices"]
    ]
    assert stuck["status"]["nodeName"] == paused
    assert [c["status"] for c in stuck["status"]["conditions"] if c["type"] == "LiveMigratable"] == ["False"]


def test_the_descheduler_is_on_off_and_absent_somewhere() -> None:
    addons = {folder.name: _load(folder).of("harvesterhci.io", "Addon").get("descheduler") for folder in EXAMPLES}
    assert {name: addon and addon["spec"]["enabled"] for name, addon in addons.items()} == {
        "air-gap": None,
        "paused-node": True,
        "pre-check-overlay": False,
        "single-node": False,
        "three-node": False,
        "three-node-v1.6.1": None,
        "two-node-witness": False,
    }


def test_the_overlay_is_shown_on_the_inputs_of_three_nodes() -> None:
    def texts(name: str) -> dict[str, str]:
        return {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "examples" / name).glob("*.yaml")}

    assert texts("pre-check-overlay") == texts("three-node")


@pytest.mark.parametrize("name", sorted(path.stem for path in ROOT.glob("tests/data/expected-status/*.yaml")))
def test_the_known_final_status_is_of_this_example(name: str) -> None:
    (document,) = parse((ROOT / f"tests/data/expected-status/{name}.yaml").read_text(encoding="utf-8"), name)
    example, status = _example(name), document.value
    assert list(status["nodeUpgradeStatuses"]) == list(example.nodes)
    assert status["previousVersion"] == example.previous_version
    cluster = example.of("provisioning.cattle.io", "Cluster")["local"]
    before = cluster["spec"]["rkeConfig"].get("provisionGeneration", 0)
    assert status.get("provisionGeneration", before + 1) == before + 1


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_preflight_of_an_example_can_answer(example: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An example has what `facts` collects: only what is on the hosts is not known."""
    assert run(["upgradeplan", "preflight", str(example)]) == 0
    assert "give it:" not in capsys.readouterr().out
