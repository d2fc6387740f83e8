"""`rehearse` for 3 to 500 nodes: the whole upgrade, node after node, and how the time grows with them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from bench.inputs import EXAMPLE, write_inputs
from bench.measure import Command, Figures, side_by_side
from bench.table import Budget, Line

UPGRADEPLAN = str(Path(sys.executable).parent / "upgradeplan")
BUDGETS = {3: 3.0, 10: None, 25: None, 50: None, 100: 30.0, 200: None, 500: 180.0}
"""Nodes, and the seconds that a rehearsal of so many may take; where there are none, the slope alone is looked at."""
SLOPE = 2.0
"""How many times longer a node may take in the larger of two neighbouring sizes."""
TOO_LONG = 900.0
"""Seconds above which a size is not measured, by what the one before took for a node."""


def bench_rehearsing(work: Path) -> Iterator[Line]:
    before: tuple[int, float] | None = None
    for nodes, budget in BUDGETS.items():
        if before is not None and before[1] * (nodes / before[0]) > TOO_LONG:
            missed = Budget(text=f"{budget or TOO_LONG:g} s, not measured:", held=False)
            yield Line(what=f"{nodes:>5,} nodes  rehearse", budgets=(missed,))
            return
        figures = _measure(nodes, work)
        yield _line(nodes, figures, before, budget)
        before = (nodes, figures.cpu)


def _measure(nodes: int, work: Path) -> Figures:
    print(f"rehearsing {nodes:,} nodes", file=sys.stderr, flush=True)
    inputs = write_inputs(nodes, work / f"rehearsal-{nodes}")
    if not (inputs / "facts.yaml").exists():
        shutil.copy(EXAMPLE / "facts.yaml", inputs)  # the certificates, without which nothing begins
    command = Command(argv=(UPGRADEPLAN, "rehearse", "--quiet", str(inputs)))
    (rounds, before), cache = (5, 1) if nodes == 3 else (1, 0), str(work / "cache")
    return side_by_side({"rehearse": command}, rounds, {"XDG_CACHE_HOME": cache}, before=before)["rehearse"]


def _line(nodes: int, figures: Figures, before: tuple[int, float] | None, budget: float | None) -> Line:
    budgets = [Budget(text=f"{budget:g} s", held=figures.seconds <= budget)] if budget else []
    if before is not None:
        times = (figures.cpu / nodes) / (before[1] / before[0])
        budgets.append(Budget(text=f"a node takes {SLOPE:g} x that of {before[0]}: {times:.2f},", held=times <= SLOPE))
    return Line(
        what=f"{nodes:>5,} nodes  rehearse, {figures.cpu / nodes:.2f} s of CPU a node",
        seconds=figures.seconds,
        quickest=figures.quickest,
        slowest=figures.slowest,
        cpu=figures.cpu,
        mib=figures.mib,
        budgets=tuple(budgets),
    )
