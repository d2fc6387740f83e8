"""The checks of one time on a large live cluster, as the webhook and the loop carry them out: time and memory."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from support.rehearsals import ROOT, template_set

from bench.measure import Command, Figures, side_by_side
from bench.served import MACHINES, ServedCluster, serving
from bench.table import Budget, Line

SIZES = (100, 300, 1000)
"""Nodes."""
MOST = 256.0
"""MiB of the whole process at the largest size: 92 objects a node come, and are some 9 KB each."""
SLOPE = 2.0
"""How many times longer a node may take in the larger of two neighbouring sizes."""
WHEN = {"start": "the loop's gate at the start", "create": "the webhook's answer to CREATE"}


def bench_gating(work: Path) -> Iterator[Line]:
    for when, words in WHEN.items():
        before: tuple[int, float] | None = None
        for nodes in SIZES:
            figures = _measure(nodes, when, work)
            yield _line(f"{nodes:>5,} nodes, {nodes * MACHINES:,} VMs  {words}", nodes, figures, before)
            before = (nodes, figures.cpu)


def _measure(nodes: int, when: str, work: Path) -> Figures:
    """Where the webhook's time is over, what it could not look at is its answer."""
    print(f"{WHEN[when]}, {nodes:,} nodes", file=sys.stderr, flush=True)
    with serving(ServedCluster(nodes, template_set().catalog.kinds), work) as kubeconfig:
        argv = (sys.executable, "-m", "bench.gate", str(kubeconfig), when)
        path = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
        return side_by_side({when: Command(argv=argv, codes=(0, 1))}, 1, {"PYTHONPATH": path}, before=0)[when]


def _line(what: str, nodes: int, figures: Figures, before: tuple[int, float] | None) -> Line:
    budgets = []
    if nodes == SIZES[-1]:
        budgets.append(Budget(text=f"{MOST:g} MiB", held=figures.mib <= MOST))
    if before is not None:
        times = (figures.cpu / nodes) / (before[1] / before[0])
        budgets.append(Budget(text=f"a node takes {SLOPE:g} x that of {before[0]}: {times:.2f},", held=times <= SLOPE))
    return Line(what=what, seconds=figures.seconds, cpu=figures.cpu, mib=figures.mib, budgets=tuple(budgets))
