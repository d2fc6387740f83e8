"""Support bundles as the cluster's objects: zips that the test makes, well and badly made."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml
from support.rehearsals import ROOT, inputs_of

from renderer.cli.program import run
from renderer.errors import Problems
from renderer.files import bundle
from renderer.files.inputs import read_inputs
from renderer.model.ref import Body, ref_of

EXAMPLE = ROOT / "examples" / "three-node"
PLURALS = {
    "Node": "nodes",
    "Secret": "secrets",
    "Machine": "machines",
    "Setting": "settings",
    "Version": "versions",
    "Cluster": "clusters",
    "ManagedChart": "managedcharts",
    "KubeVirt": "kubevirts",
    "Addon": "addons",
    "EndpointSlice": "endpointslices",
    "StorageClass": "storageclasses",
    "VirtualMachine": "virtualmachines",
    "VirtualMachineInstance": "virtualmachineinstances",
    "Volume": "volumes",
    "Bundle": "bundles",
}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}}
NODES = "yamls/cluster/kubernetes/nodes.yaml"


def listed(*bodies: Body) -> str:
    return yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [dict(body) for body in bodies]})


def example_files() -> dict[str, str]:
    """The three-node example as support-bundle-kit lays it out."""
    places: dict[str, list[Body]] = {}
    for source in inputs_of("three-node").objects:
        ref = ref_of(source.body)
        if ref.kind in PLURALS:
            scope = f"namespaced/{ref.namespace}" if ref.namespace else "cluster"
            group = "kubernetes" if ref.api_version == "v1" else ref.api_version
            places.setdefault(f"yamls/{scope}/{group}/{PLURALS[ref.kind]}.yaml", []).append(source.body)
    return {name: listed(*bodies) for name, bodies in places.items()}


def zipped(path: Path, files: Mapping[str, str | bytes], root: str = "supportbundle_1/") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(f"{root}{name}", text)
    return path


def unpacked(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def names(path: Path) -> list[str]:
    return [str(ref_of(source.body)) for source in read_inputs(cluster=[str(path)]).objects]


def refused(path: Path) -> str:
    with pytest.raises(Problems) as error:
        read_inputs(cluster=[str(path)])
    return str(error.value)


def rendered(out: Path, *cluster: str) -> dict[str, bytes]:
    assert run(["upgradeplan", "render", str(EXAMPLE), "--output-dir", str(out), *cluster]) == 0
    return {path.relative_to(out).as_posix(): path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_rendering_from_a_bundle_is_rendering_from_the_objects(tmp_path: Path) -> None:
    noise = {
        "logs/kube-system/etcd.log": "{{{",
        "yamls/namespaced/default/kubernetes/events.yaml": "a: [",
        "nodes.zip": "",
    }
    path = zipped(tmp_path / "bundle.zip", {**example_files(), **noise})
    assert rendered(tmp_path / "found", "--cluster", str(path)) == rendered(tmp_path / "expected")


@pytest.mark.slow
@pytest.mark.parametrize("below", ["", "supportbundle_1"])
def test_an_unpacked_bundle_is_read_alike(below: str, tmp_path: Path) -> None:
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}}
    noise = {
        "metadata.yaml": "projectName: Harvester",
        "yamls/namespaced/default/kubernetes/events.yaml": listed(event),
    }
    unpacked(tmp_path / below, {**example_files(), **noise})
    assert names(tmp_path) == names(zipped(tmp_path / "b.zip", example_files()))
    assert "Node charlie-1-tink-system" in names(tmp_path)
    assert not [name for name in names(tmp_path) if name.startswith("Event ")]


def test_a_typed_list_and_the_old_folders_are_read(tmp_path: Path) -> None:
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "NodeList", "items": [{"metadata": {"name": "node-1"}}]})
    settings = {"apiVersion": "harvesterhci.io/v1beta1", "kind": "Setting", "metadata": {"name": "server-version"}}
    files = {NODES: text, "yamls/cluster/harvester/settings.yaml": listed(settings)}
    assert names(zipped(tmp_path / "b.zip", files, root="")) == ["Setting server-version", "Node node-1"]


def test_empty_files_and_empty_lists_are_no_problem(tmp_path: Path) -> None:
    files = {NODES: listed(NODE), "yamls/cluster/a/settings.yaml": "", "yamls/cluster/b/volumes.yaml": listed()}
    assert names(zipped(tmp_path / "b.zip", files)) == ["Node node-1"]


def test_a_damaged_file_is_told_by_its_place_and_line(tmp_path: Path) -> None:
    path = zipped(tmp_path / "b.zip", {NODES: "kind: [", "yamls/cluster/a/settings.yaml": b"\xff"})
    text = refused(path)
    assert f"{path}:/supportbundle_1/{NODES}:" in text
    assert f"{path}:/supportbundle_1/yamls/cluster/a/settings.yaml" in text


@pytest.mark.parametrize("name", ["../../nodes.yaml", "/yamls/nodes.yaml", "a\\..\\nodes.yaml", "C:/yamls/nodes.yaml"])
def test_a_path_that_leads_out_is_refused(name: str, tmp_path: Path) -> None:
    path = zipped(tmp_path / "b.zip", {NODES: listed(NODE)})
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(zipfile.ZipInfo(name), listed(NODE))
    assert "a path outside the archive" in refused(path)


def test_a_file_that_stands_there_twice_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "b.zip", {NODES: listed(NODE)})
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(path, "a") as archive:
        archive.writestr(f"supportbundle_1/{NODES}", listed(NODE))
    assert "twice" in refused(path)


def test_a_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "LARGEST", 2**20)
    assert "is larger than 1 MiB" in refused(zipped(tmp_path / "b.zip", {NODES: b" " * (2**20 + 1)}))


def test_a_bomb_that_lies_about_its_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size in the directory is set to 10; the bytes are a mebibyte and more."""
    path = zipped(tmp_path / "b.zip", {NODES: b"#" * (2**20 + 1)})
    data = bytearray(path.read_bytes())
    for magic, offset in ((b"PK\x01\x02", 24), (b"PK\x03\x04", 22)):
        at = data.index(magic)
        data[at + offset : at + offset + 4] = (10).to_bytes(4, "little")
    path.write_bytes(bytes(data))
    monkeypatch.setattr(bundle, "LARGEST", 2**20)
    text = refused(path)
    assert "cannot be read" in text or "is larger" in text


def test_many_files_that_are_large_together_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MOST_BYTES", 1000)
    files = {f"yamls/namespaced/n{i}/v1/secrets.yaml": "#" * 400 for i in range(9)}
    files[NODES] = listed(NODE)
    assert "the files to read are larger" in refused(zipped(tmp_path / "b.zip", files))


def test_more_files_than_any_bundle_has_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "MOST_FILES", 2)
    assert "contains 3 files" in refused(zipped(tmp_path / "b.zip", {NODES: listed(NODE), "a": "", "b": ""}))


@pytest.mark.parametrize("cut", [1, 100])
def test_a_zip_that_was_cut_off_is_refused(cut: int, tmp_path: Path) -> None:
    path = zipped(tmp_path / "b.zip", {NODES: listed(NODE)})
    path.write_bytes(path.read_bytes()[:-cut])
    assert "cannot be read as a zip archive" in refused(path)


def test_damaged_bytes_are_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "b.zip", {NODES: listed(NODE)})
    data = bytearray(path.read_bytes())
    data[90] ^= 0xFF
    path.write_bytes(bytes(data))
    assert "supportbundle_1/yamls/cluster/kubernetes/nodes.yaml: cannot be " in refused(path)


def test_a_zip_of_something_else_is_refused(tmp_path: Path) -> None:
    assert "is not a support bundle" in refused(zipped(tmp_path / "b.zip", {"readme.txt": "hello"}))


def test_a_link_of_a_bundle_may_not_lead_out_of_it(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "b", {NODES: listed(NODE)})
    outside = unpacked(tmp_path / "elsewhere", {"volumes.yaml": listed({**NODE, "metadata": {"name": "node-2"}})})
    (folder / "yamls" / "cluster" / "settings.yaml").symlink_to(outside / "volumes.yaml")
    (folder / "yamls" / "cluster" / "linked").symlink_to(outside)
    for name in ("settings.yaml", "linked"):
        assert f"{folder}/yamls/cluster/{name}: a symbolic link leads out of {folder}" in refused(folder)


def test_the_objects_of_a_bundle_may_not_be_elsewhere(tmp_path: Path) -> None:
    unpacked(tmp_path / "elsewhere", {NODES: listed(NODE)})
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "yamls").symlink_to("../elsewhere/yamls")
    assert "b/yamls: a symbolic link leads out of" in refused(tmp_path / "b")


def test_a_link_within_a_bundle_is_the_file_that_it_leads_to(tmp_path: Path) -> None:
    folder = unpacked(tmp_path / "b", {NODES: listed(NODE)})
    (folder / "yamls" / "cluster" / "volumes.yaml").symlink_to(folder / NODES)
    (folder / "yamls" / "linked").symlink_to("cluster")
    assert names(folder) == ["Node node-1"]


def test_a_link_in_an_archive_is_refused(tmp_path: Path) -> None:
    path = zipped(tmp_path / "b.zip", {NODES: listed(NODE)})
    with zipfile.ZipFile(path, "a") as archive:
        link = zipfile.ZipInfo("supportbundle_1/yamls/cluster/settings.yaml")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, "/etc/passwd")
    assert "settings.yaml is a symbolic link; a file is expected" in refused(path)


@pytest.mark.slow
def test_aliases_of_all_files_of_a_bundle_are_counted_together(tmp_path: Path) -> None:
    repeated = f"- &a [{', '.join(['[]'] * 1000)}]\n- [{', '.join(['*a'] * 30)}]\n"
    files = {f"yamls/namespaced/ns-{number}/longhorn.io/v1beta2/volumes.yaml": repeated for number in range(2)}
    assert "ns-1/longhorn.io/v1beta2/volumes.yaml:1: an alias expands too much" in refused(
        zipped(tmp_path / "b", files)
    )


def test_a_name_in_an_archive_that_is_no_text(tmp_path: Path) -> None:
    path = zipped(tmp_path / "b.zip", {NODES: listed(NODE), "yamls/cluster/\u00fc.yaml": ""})
    path.write_bytes(path.read_bytes().replace("\u00fc.yaml".encode(), b"\xff\xfe.yaml"))
    assert "contains a file whose name is not UTF-8: b'supportbundle_1/yamls/cluster/\\xff\\xfe.yaml'" in refused(path)


def test_a_plan_in_a_bundle_is_not_the_plan(tmp_path: Path) -> None:
    plan = yaml.safe_load((EXAMPLE / "upgradeplan.yaml").read_text(encoding="utf-8"))
    files = {NODES: listed(NODE), "yamls/cluster/management.harvesterhci.io/v1beta1/upgradeplans.yaml": listed(plan)}
    found = read_inputs(cluster=[str(zipped(tmp_path / "b.zip", files))])
    assert found.plan is None
    assert [str(ref_of(source.body)) for source in found.other_plans] == ["UpgradePlan hvst-upgrade-864fh"]


def test_an_empty_file_of_a_kind_says_that_there_is_none(tmp_path: Path) -> None:
    files = {
        NODES: listed(NODE),
        "yamls/namespaced/longhorn-system/longhorn.io/v1beta2/volumes.yaml": listed(),
        "yamls/namespaced/default/kubevirt.io/v1/virtualmachines.yaml": yaml.safe_dump(
            {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineList", "items": []}
        ),
    }
    found = read_inputs(cluster=[str(zipped(tmp_path / "b.zip", files))])
    assert sorted(item.kind for item in found.collected) == ["VirtualMachine", "Volume"]
