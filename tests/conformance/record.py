"""`python -m conformance.record [CASE...]`: asks a real control plane and writes its answers down.

The answers are reviewed and committed like any snapshot; the suite then holds both stages to them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml
from controlplane import binaries, build, cluster

from conformance.case import DEFINITIONS, Case, cases
from conformance.run import run
from conformance.stages import RealStage

CRDS = Path(__file__).resolve().parents[2] / "schemas" / "crds"


def main(names: Iterable[str]) -> int:
    expected = frozenset(names)
    with cluster.running(binaries.built() or build.build(print), [CRDS, DEFINITIONS]) as plane:
        stage = RealStage(plane)
        for case in cases():
            if not expected or case.name in expected:
                write(case, run(case, stage))
    return 0


def write(case: Case, answers: list[Any]) -> None:
    case.answers.parent.mkdir(exist_ok=True)
    case.answers.write_text(as_text(answers), encoding="utf-8")


def as_text(answers: list[Any]) -> str:
    """One document for each step, so that a reader can count them."""
    return yaml.safe_dump_all(answers, explicit_start=True, sort_keys=True, width=120, allow_unicode=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
