"""Where promtool is, and how it is fetched: from Debian's package `prometheus`, whose service is not installed.

Where it is not, and cannot be had, the tests that need it are skipped and counted.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from controlplane import binaries

MISSING = "promtool is not here (Debian: `apt-get install prometheus`; `make controlplane` tries to fetch it)"


def find() -> Path | None:
    """On the PATH, or where `fetch` has put it."""
    if found := shutil.which("promtool"):
        return Path(found)
    fetched = _fetched()
    return fetched if os.access(fetched, os.X_OK) else None


def fetch(say: Callable[[str], None]) -> None:
    """Unpacks the one program of the package into the cache. Does nothing where apt is not here, or has no lists."""
    if find() or not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        return
    with tempfile.TemporaryDirectory() as folder:
        if not _downloaded(folder):
            if os.geteuid() == 0:
                _run(["apt-get", "update", "-qq"], folder)
            if not _downloaded(folder):
                say(MISSING)
                return
        package = next(Path(folder).glob("*.deb"))
        _run(["dpkg-deb", "-x", str(package), "unpacked"], folder)
        _fetched().parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(folder) / "unpacked" / "usr" / "bin" / "promtool", _fetched())
        say(f"promtool: {_fetched()}")


def _fetched() -> Path:
    return binaries.cache_root() / "promtool" / "promtool"


def _downloaded(folder: str) -> bool:
    return _run(["apt-get", "download", "-qq", "-o", "APT::Sandbox::User=root", "prometheus"], folder)


def _run(command: list[str], folder: str) -> bool:
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0
