"""The container image: a folder of files, and buildah that puts it over a base."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from release.python_packages import build_packages
from release.site_packages import PYTHON, fill
from release.source import ROOT, Source, run

PACKAGES = "opt/upgradeplan"
LAUNCHER = f"""\
#!/usr/bin/env python3
import sys

if sys.version_info[:2] != ({PYTHON.replace(".", ", ")}):
    sys.exit("this image is made for Python {PYTHON}, and its base has " + sys.version.split()[0])
sys.path.insert(0, "/{PACKAGES}")
from renderer.cli import main

sys.exit(main())
"""
MOST = 120 * 1000 * 1000
"""Bytes that the image may add to its base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageRequest:
    """An image to build. An empty `base` is the Containerfile's own."""

    arch: str
    tag: str
    base: str = ""


def build_image(source: Source, wanted: ImageRequest) -> int:
    """Builds the image into buildah's storage; returns the bytes that it adds to its base."""
    context = context_of(wanted.arch)
    added = write_context(source, context, wanted.arch)
    if shutil.which("buildah") is None:
        raise SystemExit(f"buildah is not installed; `docker build -f Containerfile {context}` takes what was written")
    if added > MOST:
        raise SystemExit(f"the image adds {added:,} bytes to its base, more than {MOST:,}")
    arguments = {"VERSION": source.version, "COMMIT": source.commit, "CREATED": source.created}
    given = {**arguments, **({"BASE": wanted.base} if wanted.base else {})}
    options = [word for name, value in given.items() for word in ("--build-arg", f"{name}={value}")]
    timestamp = ("--timestamp", str(source.epoch))  # of every file, and of the image itself
    file = ("-f", ROOT / "Containerfile")
    run("buildah", "bud", "-q", "--arch", wanted.arch, *timestamp, *options, "-t", wanted.tag, *file, context)
    return added


def context_of(arch: str) -> Path:
    """The folder in which the files of an image are put together."""
    return ROOT / "build" / "image" / arch


def write_context(source: Source, context: Path, arch: str) -> int:
    """Writes the files that the image adds to its base into `context/root`; returns their bytes."""
    shutil.rmtree(context, ignore_errors=True)
    root = context / "root"
    packages = root / PACKAGES
    packages.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as folder:
        (wheel,) = build_packages(source, Path(folder), "wheel")
        fill(packages, wheel, arch, f"/{PACKAGES}")
    launcher = root / "usr" / "local" / "bin" / "upgradeplan"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(LAUNCHER, encoding="utf-8")
    for path in sorted(root.rglob("*")):
        path.chmod(0o755 if path.is_dir() or path == launcher else 0o644)
    return size_of(root)


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
