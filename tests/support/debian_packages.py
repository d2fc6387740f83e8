"""Programs of Debian's packages that some tests need, and what is said where they are missing."""

from __future__ import annotations

import os
import shutil
import subprocess

_PACKAGES = {"qemu-aarch64-static": "qemu-user-static", "qemu-x86_64-static": "qemu-user-static"}
"""Of programs that are not named as their package."""


def why_not_installed(*programs: str) -> str | None:
    """Why the programs are not there; None if they are. With CI=true they are installed where that is possible: as
    root, where apt-get is and reaches its package lists."""
    missing = [name for name in programs if shutil.which(name) is None]
    if missing and os.environ.get("CI") == "true" and os.geteuid() == 0 and _has_packages():
        packages = (_PACKAGES.get(name, name) for name in missing)
        _apt("install", "-y", "--no-install-recommends", *packages).check_returncode()
        return None
    return f"{' and '.join(missing)} not installed" if missing else None


def _has_packages() -> bool:
    return shutil.which("apt-get") is not None and _apt("update").returncode == 0


def _apt(*words: str) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", *words], env=environment, check=False)
