"""`preflight` of a support bundle: ten virtual machines a node, each with a volume; how time and memory grow."""

from __future__ import annotations

import copy
import json
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from bench.inputs import EXAMPLE, node_name, write_inputs
from bench.measure import Command, Figures, side_by_side
from bench.table import Budget, Line

UPGRADEPLAN = str(Path(sys.executable).parent / "upgradeplan")
BUDGETS = {100: None, 300: None, 1000: (60.0, 1024.0)}
"""Nodes, and the seconds and MiB that so many may take."""
MACHINES = 10
"""Virtual machines on a node."""
SLOPE = 2.0
"""How many times longer a node may take in the larger of two neighbouring sizes."""


def bench_checking(work: Path) -> Iterator[Line]:
    before: tuple[int, float] | None = None
    for nodes, budget in BUDGETS.items():
        figures = _measure(nodes, work)
        yield _line(nodes, figures, before, budget)
        before = (nodes, figures.cpu)


def _measure(nodes: int, work: Path) -> Figures:
    print(f"pre-flight of {nodes:,} nodes", file=sys.stderr, flush=True)
    command = Command(argv=command_for(nodes, work), codes=(0, 1))
    return side_by_side({"preflight": command}, 1, {"XDG_CACHE_HOME": str(work / "cache")}, before=0)["preflight"]


def command_for(nodes: int, work: Path) -> tuple[str, ...]:
    """With a plan, a release and what the kubelets report, so that every check but those of the hosts has to judge."""
    given = ("upgradeplan.yaml", "harvester-release.yaml", "settings.yaml", "version.yaml")
    files = [*(str(EXAMPLE / name) for name in given), str(write_bundle(nodes, work)), str(_facts(nodes, work))]
    return (UPGRADEPLAN, "preflight", "-o", "json", *files)


def _facts(nodes: int, work: Path) -> Path:
    facts = yaml.safe_load((EXAMPLE / "facts.yaml").read_text())
    kubelet = next(iter(facts["facts"]["kubelet"].values()))
    facts["facts"]["kubelet"] = {node_name(number): kubelet for number in range(nodes)}
    path = work / f"facts-{nodes}.yaml"
    path.write_text(json.dumps(facts))
    return path


def _line(nodes: int, figures: Figures, before: tuple[int, float] | None, budget: tuple[float, float] | None) -> Line:
    budgets = []
    if budget is not None:
        seconds, mib = budget
        held = figures.seconds <= seconds and figures.mib <= mib
        budgets.append(Budget(text=f"{seconds:g} s, {mib:g} MiB", held=held))
    if before is not None:
        times = (figures.cpu / nodes) / (before[1] / before[0])
        budgets.append(Budget(text=f"a node takes {SLOPE:g} x that of {before[0]}: {times:.2f},", held=times <= SLOPE))
    return Line(
        what=f"{nodes:>5,} nodes, {nodes * MACHINES:,} VMs  preflight",
        seconds=figures.seconds,
        cpu=figures.cpu,
        mib=figures.mib,
        budgets=tuple(budgets),
    )


def write_bundle(nodes: int, work: Path) -> Path:
    """A bundle as support-bundle-kit lays it out, of as many nodes."""
    objects = yaml.load((write_inputs(nodes, work / f"nodes-{nodes}") / "objects.yaml").read_text(), yaml.CSafeLoader)
    path = work / f"bundle-{nodes}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        files = _files([*objects["items"], *_machines(nodes), *_others(nodes)])
        for name, bodies in {**_empty(), **files}.items():
            archive.writestr(f"supportbundle_1/yamls/{name}", _listed(bodies))
    return path


def _others(nodes: int) -> Iterator[dict[str, Any]]:
    """A pod on each node, a replica and a backup for each machine, and the namespaces."""
    items = [
        item
        for name in ("checked.yaml", "components.yaml")
        for item in yaml.safe_load_all((EXAMPLE / name).read_text())
    ]
    kinds = ("Namespace", "CDIConfig", "KubeVirt", "Addon", "EndpointSlice", "StorageClass")
    yield from (item for item in items if item["kind"] in kinds)
    pod, backup, replica = (
        next(item for item in items if item["kind"] == kind) for kind in ("Pod", "VirtualMachineBackup", "Replica")
    )
    for number in range(nodes * MACHINES):
        made = [
            copy.deepcopy(body) for body in ((pod, backup, replica) if number % MACHINES == 0 else (backup, replica))
        ]
        for body in made:
            body["metadata"]["name"] = f"{body['metadata']['name']}-{number}"
            if "nodeName" in body["spec"]:
                body["spec"]["nodeName"] = node_name(number // MACHINES)
            if "nodeID" in body["spec"]:
                body["spec"]["nodeID"] = node_name(number // MACHINES)
        yield from made


def _empty() -> dict[str, list[dict[str, Any]]]:
    """A file for each kind that a cluster has none of, as a bundle has it."""
    facts = yaml.safe_load((EXAMPLE / "facts.yaml").read_text())
    files = _files([{**item, "metadata": {}} for item in facts["collected"]])
    return {name: [] for name in files}


def _files(bodies: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for body in bodies:
        namespace = body["metadata"].get("namespace")
        place = f"namespaced/{namespace}" if namespace else "cluster"
        group = body["apiVersion"] if "/" in body["apiVersion"] else "kubernetes"
        found.setdefault(f"{place}/{group}/{_plural(body['kind'])}.yaml", []).append(body)
    return found


def _plural(kind: str) -> str:
    return kind.lower() + ("es" if kind.endswith("s") else "s")


def _listed(bodies: list[dict[str, Any]]) -> str:
    """YAML written as JSON, an object a line: the usual form would take longer to write than all that is measured."""
    items = ",\n".join(json.dumps(body) for body in bodies)
    return f'{{"apiVersion": "v1", "kind": "List", "items": [\n{items}\n]}}\n'


def _machines(nodes: int) -> Iterator[dict[str, Any]]:
    documents = [
        part for name in ("vms.yaml", "components.yaml") for part in yaml.safe_load_all((EXAMPLE / name).read_text())
    ]
    items = [item for part in documents for item in part.get("items", [part])]
    volume = next(item for item in items if item["kind"] == "Volume")
    instance = next(item for item in items if item["kind"] == "VirtualMachineInstance")
    machine = next(item for item in items if item["kind"] == "VirtualMachine")
    for number in range(nodes * MACHINES):
        on = node_name(number // MACHINES)
        for body in (instance, machine, volume):
            made = copy.deepcopy(body)
            made["metadata"]["name"] = f"{body['metadata']['name']}-{number}"
            if body is instance:
                made["status"]["nodeName"] = on
                made["metadata"].setdefault("labels", {})["kubevirt.io/nodeName"] = on
            yield made
