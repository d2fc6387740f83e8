"""Support for tests of commands on a real API server, as processes of their own where they are interrupted, asked or
watched. Nobody plays Harvester here, so plans stand where a test has put them.
"""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from bench.live import BEGUN, IMAGES, PLANS, seed_objects, without_disk_check
from controlplane.cluster import ControlPlane, Snapshot
from controlplane.waiting import PATIENCE, until

from renderer.cli.program import run
from support.rehearsals import ROOT, inputs_of

EXAMPLE = ROOT / "examples" / "three-node"
PLAN = "hvst-upgrade-864fh"
REMOVAL = f"/apis/upgrade.cattle.io/v1/namespaces/cattle-system/plans/{PLAN}-skip-manifest-remove"


@contextmanager
def _own_signals() -> Iterator[None]:
    """A command that stops on signals leaves its handlers behind."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


class SeededCluster:
    """The three-node cluster on an API server: seeded once, and again where a test has changed or deleted what was
    seeded, since that costs more than most commands."""

    def __init__(self, plane: ControlPlane) -> None:
        self.plane = plane
        self._seeded: Snapshot | None = None

    def site(self) -> CommandSite:
        """As it was seeded, with a new plan in it."""
        if self._seeded is not None and self.plane.still_has(self._seeded):
            self.plane.wipe(self._seeded)
        else:
            self.plane.wipe()
            seed_objects(self.plane, EXAMPLE)
            self._seeded = self.plane.snapshot()
        self.plane.api.create(PLANS, without_disk_check(EXAMPLE))
        return CommandSite(self.plane)


class CommandSite:
    """The three-node cluster with its plan in it, and our program beside it."""

    def __init__(self, plane: ControlPlane, target: tuple[str, ...] = ()) -> None:
        self.plane = plane
        self.target = target or ("--kubeconfig", str(plane.kubeconfig))

    def argv(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "renderer.cli", *words, *self.target]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """In this process: starting one costs more than most commands."""
        argv, out, err = ["upgradeplan", *words, *self.target], io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), _own_signals():
            status = run(argv)
        done = subprocess.CompletedProcess(argv, status, out.getvalue(), err.getvalue())
        assert "Traceback" not in done.stderr
        return done

    def answered(self, answer: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A process of its own that reads `answer` and then the end of its input."""
        return subprocess.run(
            self.argv(*words), input=answer, capture_output=True, text=True, cwd=ROOT, check=False, timeout=PATIENCE
        )

    @contextmanager
    def started(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        with subprocess.Popen(
            self.argv(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def plan(self) -> Any:
        return self.plane.api.get(f"{PLANS}/{PLAN}")

    def stands(self, **status: Any) -> None:
        release = inputs_of("three-node").release
        assert release is not None
        known = {**BEGUN, "releaseMetadata": dict(release.body), **status}
        self.plane.api.patch(f"{PLANS}/{PLAN}/status", {"status": known})

    def charts_are_let_go(self) -> None:
        """What the last step waits for, whose other half was done before we took over."""
        until("the packaged charts are let go", lambda: self.plane.api.get(REMOVAL.rpartition("/")[0])["items"])
        said = {"type": "Complete", "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}
        self.plane.api.patch(f"{REMOVAL}/status", {"status": {"conditions": [said]}})

    def images(self) -> list[str]:
        return [item["metadata"]["name"] for item in self.plane.api.get(IMAGES)["items"]]

    def import_says(self, kind: str) -> None:
        said = {"type": kind, "status": "True", "lastUpdateTime": "2026-01-01T00:00:00Z"}
        self.plane.api.patch(f"{IMAGES}/{PLAN}-iso", {"status": {"progress": 100, "conditions": [said]}})
