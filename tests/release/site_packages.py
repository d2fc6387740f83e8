"""The folder of Python packages of an image: the wheel and its pinned dependencies, for any machine, made anywhere.

pip resolves for the image's Python and machine and checks every hash; no code of a package runs.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from release.source import ROOT, run

PYTHON = "3.11"
PLATFORMS: Mapping[str, Sequence[str]] = {
    arch: [f"{tag}_{machine}" for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")]
    for arch, machine in {"amd64": "x86_64", "arm64": "aarch64"}.items()
}
"""By the name that images have for a machine: the wheels that run there, with a glibc of 2.28 (2018) or later."""

UNUSED = ("kubernetes/aio", "kubernetes/client/api")
"""Generated classes, one for each call of each API group: half of all bytes. `reconcile.cluster.transport` sends raw
requests and imports none of them."""

_PLACE_OF_INSTALLER = ("bin", "*.dist-info/RECORD", "*.dist-info/INSTALLER", "*.dist-info/REQUESTED")
"""Scripts name the Python that installed them, and records list these scripts."""


def fill(folder: Path, wheel: Path, arch: str, place: str) -> None:
    """Installs into `folder`, which will be at `place` in the image. Bytecode is trusted without a look at its source:
    a file's time is lost in an image."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as own:
        own.write(f"{_pin(wheel)}\n")
        own.flush()
        requirements = ("-r", ROOT / "requirements.txt", "-r", own.name)
        run(*_PIP, "--target", folder, "--find-links", wheel.parent, *resolved_for(arch), *requirements)
    _remove(found for pattern in (*UNUSED, *_PLACE_OF_INSTALLER) for found in folder.glob(pattern))
    options = ("-q", "--invalidation-mode", "unchecked-hash", "-s", folder, "-p", place)
    run(_python(), "-m", "compileall", *options, folder, environment={"PYTHONHASHSEED": "0"})


_PIP = (
    sys.executable,
    "-m",
    "pip",
    "install",
    "-q",
    "--no-compile",
    "--ignore-installed",
    "--disable-pip-version-check",
)


def resolved_for(arch: str) -> tuple[str, ...]:
    """Options of pip by which it takes the wheels of this architecture, each with a pinned hash."""
    platforms = (word for name in PLATFORMS[arch] for word in ("--platform", name))
    return ("--require-hashes", "--only-binary=:all:", "--python-version", PYTHON, *platforms)


def _pin(wheel: Path) -> str:
    name, version = wheel.name.split("-")[:2]
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"


def _python() -> str:
    """A Python that makes bytecode of the image's version; it is the same for all machines."""
    if sys.version_info[:2] == tuple(map(int, PYTHON.split("."))):
        return sys.executable
    if (found := shutil.which(f"python{PYTHON}")) is None:
        raise SystemExit(f"python{PYTHON} is needed to compile the image's packages; this is {sys.version.split()[0]}")
    return found


def _remove(paths: Iterable[Path]) -> None:
    for path in list(paths):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def missing_wheels(arch: str) -> str:
    """What pip says of pins without a wheel for this architecture; empty if all have one."""
    with tempfile.TemporaryDirectory() as target:
        options = ("--dry-run", "--target", target, *resolved_for(arch), "-r", str(ROOT / "requirements.txt"))
        done = subprocess.run([*_PIP, *options], capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""
