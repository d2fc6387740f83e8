"""`python -m mutation [COUNT]`: so many changes, drawn from all by a fixed seed, each run against its module's tests.

A child process loads the changed text in the module's place; no file of the tree is written. A test that fails, or a
module that does not load, has noticed the change. The changes that nobody noticed are printed.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutation.mutants import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[2]
COUNT = 60
SEED = 1
SECONDS = 120
BESIDE_EACH_OTHER = 2

CORE: Mapping[str, Sequence[str]] = {
    "renderer.digest": ("test_determinism.py", "test_render_spec.py", "test_apply.py"),
    "renderer.names": ("test_names.py",),
    "renderer.versions": ("test_versions.py",),
    "renderer.image_names": ("test_image_names.py", "test_render_spec_cleanup.py"),
    "renderer.quantity": ("test_probes.py", "test_diff.py", "test_quantity.py"),
    "reconcile.probes.field_predicate": ("test_probes.py",),
    "reconcile.decide.admission": (
        "test_admission.py",
        "test_lane.py",
        "test_cases_loop.py",
        "test_cases_loop_nodes.py",
    ),
    "reconcile.decide.step_start": ("test_decide.py", "test_cases_loop.py", "test_lane.py", "test_check_gate.py"),
    "reconcile.decide.step": ("test_decide.py", "test_cases_loop.py", "test_cases_loop_nodes.py", "test_way_out.py"),
    "reconcile.decide.ending": ("test_decide.py", "test_cases_loop_nodes.py", "test_way_out.py", "test_takeover.py"),
}
"""Modules of the pure core, and the tests that are to notice."""

_RUN = """\
import importlib.util, pathlib, sys
name, text, *words = sys.argv[1:]
class Finder:
    def find_spec(self, module, path=None, target=None):
        return importlib.util.spec_from_file_location(module, text) if module == name else None
sys.meta_path.insert(0, Finder())
import pytest
sys.exit(pytest.main(["-q", "-x", "--quick", "-p", "no:cacheprovider", "-p", "no:xdist", *words]))
"""


def main(count: int) -> int:
    drawn = _drawn(count)
    with ThreadPoolExecutor(BESIDE_EACH_OTHER) as pool:
        noticed = list(pool.map(_is_noticed, drawn))
    for mutant, was in zip(drawn, noticed, strict=True):
        if not was:
            print(f"{mutant.module.replace('.', '/')}.py:{mutant.line}: {mutant.what}")
    print(f"{sum(noticed)} of {len(drawn)} changes were noticed")
    return 0


def _drawn(count: int) -> Sequence[Mutant]:
    every = [mutant for module in CORE for mutant in _mutants(module)]
    return random.Random(SEED).sample(every, min(count, len(every)))


def _mutants(module: str) -> Iterator[Mutant]:
    yield from mutants_of(module, _file(module).read_text(encoding="utf-8"))


def _file(module: str) -> Path:
    return ROOT / f"{module.replace('.', '/')}.py"


def _is_noticed(mutant: Mutant) -> bool:
    tests = [f"tests/{name}" for name in CORE[mutant.module] if (ROOT / "tests" / name).exists()]
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "changed.py"
        text.write_text(mutant.source, encoding="utf-8")
        command = [sys.executable, "-c", _RUN, mutant.module, str(text), *tests]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return True
    return done.returncode != 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if sys.argv[1:] else COUNT))
