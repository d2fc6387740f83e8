"""Wheel and sdist."""

from __future__ import annotations

import sys
from pathlib import Path

from release.source import Source, run


def build_packages(source: Source, folder: Path, *targets: str) -> tuple[Path, ...]:
    """Builds `wheel`, `sdist`; every file in them has the commit's time."""
    environment = {"SOURCE_DATE_EPOCH": str(source.epoch)}
    for target in targets:
        run(sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder, environment=environment)
    patterns = {"wheel": "*.whl", "sdist": "*.tar.gz"}
    return tuple(next(folder.glob(patterns[target])) for target in targets)
