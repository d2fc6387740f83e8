"""`render --clusters` for 100 and 1,000 clusters of three nodes: time, memory, and what one changed value writes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bench.inputs import EXAMPLE
from bench.measure import Command, Figures, side_by_side
from bench.rendering import UPGRADEPLAN
from bench.table import Budget, Line

SIZES = (100, 1000)
SHARED = ("harvester-release.yaml", "version.yaml")
WAVES = """\
apiVersion: upgradeplan/v1
kind: Waves
name: v1-8-0
waves:
- {name: canary, clusters: [site-0000]}
- {name: first, percentage: 10}
- {name: rest, rest: true, pause: manual}
"""
PROCESSES = 2


def bench_clusters(work: Path) -> Iterator[Line]:
    smaller: Figures | None = None
    for size in SIZES:
        print(f"measuring {size:,} clusters", file=sys.stderr, flush=True)
        place = work / str(size)
        inputs = write_clusters(size, place / "clusters")
        folders = ("--clusters", str(inputs), "--output-dir", str(place / "rendered"))
        argv = (UPGRADEPLAN, "render", *folders, "--format", "flux", "--jobs", str(PROCESSES))
        environment = {"XDG_CACHE_HOME": str(work / "cache")}
        first = side_by_side({"": Command(argv=argv)}, 1, environment, before=0)[""]
        objects = _objects(place / "rendered")
        yield _line(f"{size:>5,} clusters {objects:>6,} objects  first", first, smaller, objects)
        again = side_by_side({"": Command(argv=argv)}, 1, environment, before=0)[""]
        yield _line(f"{size:>5,} clusters {objects:>6,} objects  nothing has changed", again)
        change = inputs / "site-0001" / "upgradeplan.yaml"
        change.write_text(change.read_text(encoding="utf-8").replace("restoreVM: true", "restoreVM: false"))
        done = subprocess.run([*argv, "-o", "json"], check=True, capture_output=True, text=True)
        yield Line(what=f"{size:>5,} clusters, one value changed: {_written(done.stdout)} files written")
        smaller = first


def write_clusters(count: int, folder: Path) -> Path:
    """Each is the three-node example with nodes and a plan of other names."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLE.glob("*.yaml")}
    for number in range(count):
        name = f"site-{number:04}"
        (folder / name).mkdir(parents=True)
        for file, text in texts.items():
            if file not in SHARED:
                own = text.replace("tink-system", name).replace("hvst-upgrade-864fh", f"v1-8-0-{name}")
                (folder / name / file).write_text(own, encoding="utf-8")
    for file in SHARED:
        (folder / file).write_text(texts[file], encoding="utf-8")
    (folder / "waves.yaml").write_text(WAVES, encoding="utf-8")
    return folder


def _line(what: str, taken: Figures, smaller: Figures | None = None, objects: int = 0) -> Line:
    line = Line(what=what, seconds=taken.seconds, cpu=taken.cpu, mib=taken.mib)
    if not objects:
        return line
    each = taken.cpu / PROCESSES / objects
    budgets = [Budget(text=f"1 ms an object: {each * 1000:.2f} ms,", held=each <= 0.001)]
    if smaller is not None:
        budgets.append(Budget(text="memory flat", held=taken.mib <= 1.5 * smaller.mib))
    return replace(line, budgets=tuple(budgets))


def _objects(rendered: Path) -> int:
    """Manifests of all clusters; the first one stands for the others, which are alike."""
    tree = next(iter(sorted((rendered / "clusters").glob("*/*"))))
    files = [path for path in tree.rglob("*") if path.name.endswith((".yaml", ".yaml.txt")) and path.parent != tree]
    found = sum(text.startswith("kind: ") for path in files for text in path.read_text().splitlines())
    return found * len(list((rendered / "clusters").iterdir()))


def _written(answer: str) -> int:
    model = json.loads(answer)
    rows = [*model["clusters"], model["rollout"]]
    return sum(row["changes"][word] for row in rows for word in ("missing", "changed", "stale"))
