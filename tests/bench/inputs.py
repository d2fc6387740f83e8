"""Inputs for a cluster of any size: the three-node example with its first node multiplied.

Three nodes are the example itself. The other sizes have no virtual machines.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "three-node"
AS_THEY_ARE = ("upgradeplan.yaml", "harvester-release.yaml", "version.yaml", "settings.yaml", "components.yaml")
OF_ONE_NODE = {"Node", "Machine"}
MACHINE_PLAN = "rke.cattle.io/machine-plan"


def write_inputs(nodes: int, folder: Path) -> Path:
    if nodes == len(_items("nodes.yaml")):
        shutil.copytree(EXAMPLE, folder)
        return folder
    folder.mkdir(parents=True)
    for name in AS_THEY_ARE:
        shutil.copy(EXAMPLE / name, folder)
    items = _items("nodes.yaml") + _items("rancher.yaml")
    own = [item for item in items if _belongs_to_a_node(item)]
    shared = [item for item in items if not _belongs_to_a_node(item)]
    first = [item for item in own if _machine(own[0]) in json.dumps(item)]
    written = [*shared, *(item for number in range(nodes) for item in _node(first, number))]
    (folder / "objects.yaml").write_text(yaml.dump({"apiVersion": "v1", "kind": "List", "items": written}))
    return folder


def node_name(number: int) -> str:
    return f"node-{number:04}"


def machine_name(number: int) -> str:
    return f"custom-{number:012x}"


def _items(file: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = yaml.safe_load((EXAMPLE / file).read_text())["items"]
    return items


def _belongs_to_a_node(item: dict[str, Any]) -> bool:
    return item["kind"] in OF_ONE_NODE or item.get("type") == MACHINE_PLAN


def _machine(node: dict[str, Any]) -> str:
    return str(node["metadata"]["annotations"]["cluster.x-k8s.io/machine"])


def _node(first: list[dict[str, Any]], number: int) -> Iterator[dict[str, Any]]:
    """Node, Machine and machine-plan Secret under other names."""
    name, machine = first[0]["metadata"]["name"], _machine(first[0])
    for item in first:
        text = json.dumps(item).replace(name, node_name(number)).replace(machine, machine_name(number))
        yield json.loads(text)
