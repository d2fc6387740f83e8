"""`python -m bench [NAME...]`: runs the benches, prints their tables, and ends with 1 if a budget was missed."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.checking import bench_checking
from bench.gating import bench_gating
from bench.live import bench_live, bench_many_nodes
from bench.many_clusters import bench_clusters
from bench.rehearsing import bench_rehearsing
from bench.rendering import bench_rendering
from bench.table import Line, as_text

BENCHES: Mapping[str, Callable[[Path], Iterator[Line]]] = {
    "rendering": bench_rendering,
    "clusters": bench_clusters,
    "rehearsing": bench_rehearsing,
    "checking": bench_checking,
    "gating": bench_gating,
    "live": bench_live,
    "many-nodes": bench_many_nodes,
}


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in BENCHES]:
        print(f"no bench {', '.join(unknown)}; there are {', '.join(BENCHES)}", file=sys.stderr)
        return 2
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    held = True
    for name in names or BENCHES:
        with tempfile.TemporaryDirectory() as work:
            lines = list(BENCHES[name](Path(work)))
        print(f"{name}\n{as_text(lines)}\n")
        held = held and all(line.held for line in lines)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
