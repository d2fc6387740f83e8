"""`preflight` of a support bundle that holds anything but what a cluster wrote: exit status 2, and where it is."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from renderer.cli.program import run

NODES = "cluster/kubernetes/nodes.yaml"
NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"
ALIASES = "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(12))
VOLUMES = "namespaced/longhorn-system/longhorn.io/v1beta2/volumes.yaml"
INSTANCES = "namespaced/default/kubevirt.io/v1/virtualmachineinstances.yaml"


def volume(spec: str) -> str:
    return f"apiVersion: longhorn.io/v1beta2\nkind: Volume\nmetadata: {{name: a, namespace: longhorn-system}}\n{spec}\n"


def instance(spec: str) -> str:
    return (
        f"apiVersion: kubevirt.io/v1\nkind: VirtualMachineInstance\nmetadata: {{name: a, namespace: default}}\n{spec}\n"
    )


@pytest.mark.parametrize(
    ("place", "content", "says"),
    [
        (NODES, f"a: &a [{','.join('x' * 9)}]\n{ALIASES}", f"{NODES}:1: an alias expands too much"),
        (NODES, "[" * 20_000, f"{NODES}:1: while increasing flow level"),
        (NODES, NODE.encode("utf-16"), f"{NODES}: is UTF-16 text"),
        (NODES, NODE.replace("name: a", "name: 'gr\xfcn'").encode("latin-1"), f"{NODES}:3: byte 0xfc is not UTF-8"),
        (NODES, f"{NODE}\0\0", f"{NODES}: is a binary file"),
        (NODES, "apiVersion: v1\nkind: NodeList\nitems: [7, null]\n", f"{NODES}:3: items[0]: an item is not a mapping"),
        (NODES, NODE.replace("{name: a}", "[a]"), f"{NODES}:3: metadata: a list is not a mapping"),
        (NODES, f"{NODE}status: {{conditions: {{a: b}}}}\n", f"{NODES}:4: status.conditions"),
        (VOLUMES, volume("spec: {numberOfReplicas: [1]}"), f"{VOLUMES}:4: spec.numberOfReplicas"),
        (VOLUMES, volume("status: {kubernetesStatus: [x]}"), f"{VOLUMES}:4: status.kubernetesStatus"),
        (
            INSTANCES,
            instance("spec: {domain: {devices: {disks: {a: b}}}}"),
            f"{INSTANCES}:4: spec.domain.devices.disks",
        ),
        (INSTANCES, instance("status: {conditions: x}"), f"{INSTANCES}:4: status.conditions"),
    ],
)
def test_it_is_refused_at_its_place(
    place: str, content: str | bytes, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bundle = tmp_path / "bundle.zip"
    with zipfile.ZipFile(bundle, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(f"supportbundle_1/yamls/{place}", content)
    assert run(["upgradeplan", "preflight", str(bundle)]) == 2
    shown = capsys.readouterr()
    assert says in shown.err
    assert "remedy: " in shown.err
    assert (shown.out, "Traceback" in shown.err) == ("", False)
