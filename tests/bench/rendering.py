"""`render` and `validate` for 1, 3, 100 and 1,000 nodes, beside `helm template` of as many objects."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml
from controlplane import binaries

from bench.chart import manifest_files, write_chart
from bench.inputs import machine_name, node_name, write_inputs
from bench.measure import Command, Figures, side_by_side
from bench.table import Budget, Line

ROUNDS = {1: 21, 3: 21, 100: 7, 1000: 3}
UPGRADEPLAN = str(Path(sys.executable).parent / "upgradeplan")
HELM = "helm template"
FLOOR = "an empty program with the same libraries"
"""What no program of ours that is Python and uses them can go below."""
RENDER = "render"
FIRST = "render, nothing cached"
TO_FOLDER = "render --output-dir"
VALIDATE = "validate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    nodes: int
    manifests: int
    figures: dict[str, Figures]


def bench_rendering(work: Path) -> Iterator[Line]:
    smaller: Size | None = None
    for nodes in ROUNDS:
        size = _measure(nodes, work / str(nodes))
        yield from (_line(name, size, smaller) for name in size.figures)
        smaller = size


def _measure(nodes: int, work: Path) -> Size:
    print(f"measuring {nodes:,} nodes", file=sys.stderr, flush=True)
    inputs, tree = write_inputs(nodes, work / "inputs"), work / "tree"
    subprocess.run([UPGRADEPLAN, "render", str(inputs), "--output-dir", str(tree)], check=True, capture_output=True)
    chart = write_chart(tree, _names(nodes, inputs), work / "chart")
    manifests = _count(tree)
    _check_count(chart, manifests)
    figures = side_by_side(
        _commands(nodes, inputs, chart, work), ROUNDS[nodes], {"XDG_CACHE_HOME": str(work / "cache")}
    )
    return Size(nodes=nodes, manifests=manifests, figures=figures)


def _commands(nodes: int, inputs: Path, chart: Path, work: Path) -> dict[str, Command]:
    """What compiling the templates costs does not depend on the number of nodes."""
    new_cache, out = work / "new-cache", work / "out"
    render = (UPGRADEPLAN, "render", str(inputs))
    first = Command(argv=("env", f"XDG_CACHE_HOME={new_cache}", *render), before=lambda: _remove(new_cache))
    return {
        RENDER: Command(argv=render),
        HELM: Command(argv=(_helm(), "template", "upgrade", str(chart))),
        **({FLOOR: Command(argv=(sys.executable, "-c", "import click, jinja2, yaml"))} if nodes == 3 else {}),
        VALIDATE: Command(argv=(UPGRADEPLAN, "validate", str(inputs))),
        TO_FOLDER: Command(argv=(*render, "--output-dir", str(out)), before=lambda: _remove(out)),
        **({FIRST: first} if nodes <= 3 else {}),
    }


def _line(name: str, size: Size, smaller: Size | None) -> Line:
    figures = size.figures[name]
    return Line(
        what=f"{size.nodes:>5,} nodes {size.manifests:>5,} objects  {name}",
        seconds=figures.seconds,
        quickest=figures.quickest,
        slowest=figures.slowest,
        cpu=figures.cpu,
        mib=figures.mib,
        ratio=None if name == HELM else figures.seconds / size.figures[HELM].seconds,
        budgets=tuple(_budgets(size, smaller)) if name == RENDER else (),
    )


def _budgets(size: Size, smaller: Size | None) -> Iterator[Budget]:
    """What DESIGN.md promises of this size."""
    taken = size.figures[RENDER]
    if size.nodes == 3:
        yield Budget(text="250 ms", held=taken.seconds <= 0.250)
        yield Budget(text="40 MiB", held=taken.mib <= 40)
        yield Budget(text="2.5 x helm", held=taken.seconds <= 2.5 * size.figures[HELM].seconds)
        times = taken.seconds / size.figures[FLOOR].seconds
        yield Budget(text=f"2.5 x the empty program: {times:.2f},", held=times <= 2.5)
    if size.nodes == 1000 and smaller:
        added = (taken.seconds - smaller.figures[RENDER].seconds) / (size.manifests - smaller.manifests)
        text = f"1.5 ms a further object: {added * 1000:.2f} ms,"
        yield Budget(text=text, held=added <= 0.0015)


def _names(nodes: int, inputs: Path) -> dict[str, str]:
    """Node name to machine name."""
    if nodes != 3:
        return {node_name(number): machine_name(number) for number in range(nodes)}
    items = yaml.safe_load((inputs / "nodes.yaml").read_text())["items"]
    metadata = (item["metadata"] for item in items)
    return {found["name"]: found["annotations"]["cluster.x-k8s.io/machine"] for found in metadata}


def _count(tree: Path) -> int:
    return sum(_objects(path.read_text()) for path in manifest_files(tree))


def _objects(text: str) -> int:
    return sum(line.startswith("kind: ") for line in text.splitlines())


def _helm() -> str:
    return str(binaries.clients_dir() / "helm")


def _check_count(chart: Path, manifests: int) -> None:
    """That helm is given as much to do as we are."""
    done = subprocess.run([_helm(), "template", "upgrade", str(chart)], check=True, capture_output=True, text=True)
    if (found := _objects(done.stdout)) != manifests:
        raise SystemExit(f"helm renders {found} objects, upgradeplan {manifests}: they cannot be compared")


def _remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
