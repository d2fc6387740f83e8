"""Measures whole processes, several against each other: one run of each, round after round, so that a busy moment of
the machine meets them all.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

ONCE = Path(__file__).parent / "once.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`before` is run before each run and is not measured; `codes` are the exit statuses that count as done."""

    argv: tuple[str, ...]
    before: Callable[[], None] | None = None
    codes: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """`cpu`: seconds of processor time, which a busy machine does not lengthen as it does `seconds`."""

    seconds: float
    cpu: float
    mib: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Of several runs: medians of time, processor time and the largest memory; the quickest and the slowest run."""

    seconds: float
    quickest: float
    slowest: float
    cpu: float
    mib: float


def side_by_side(
    commands: Mapping[str, Command], rounds: int, environment: Mapping[str, str], *, before: int = 1
) -> dict[str, Figures]:
    """More rounds than asked for: the ones `before` fill caches and do not count."""
    samples: dict[str, list[Sample]] = {name: [] for name in commands}
    for _ in range(before + rounds):
        for name, command in commands.items():
            samples[name].append(_sample(command, environment))
    return {name: _figures(taken[before:]) for name, taken in samples.items()}


def _sample(command: Command, environment: Mapping[str, str]) -> Sample:
    if command.before:
        command.before()
    measuring = [sys.executable, "-I", "-S", str(ONCE), *command.argv]
    done = subprocess.run(measuring, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    answer = json.loads(done.stdout)
    if answer["code"] not in command.codes:
        raise SystemExit(f"{' '.join(command.argv)} ended with {answer['code']}:\n{done.stderr}")
    return Sample(**answer["taken"])


def _figures(samples: list[Sample]) -> Figures:
    seconds = [sample.seconds for sample in samples]
    return Figures(
        seconds=statistics.median(seconds),
        quickest=min(seconds),
        slowest=max(seconds),
        cpu=statistics.median(sample.cpu for sample in samples),
        mib=statistics.median(sample.mib for sample in samples),
    )
