"""Everything that a release consists of, into one folder."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from release.archive import files_below, pack
from release.bill_of_materials import bill_of_materials
from release.image import PACKAGES, ImageRequest, build_image, context_of
from release.python_packages import build_packages
from release.source import Source, run
from renderer.files.templates import read_templates
from renderer.install.formats import CHART, FORMATS
from renderer.install.prepare import prepare_installation

CHECKSUMS = "SHA256SUMS"


def make_release(source: Source, folder: Path, images: Sequence[ImageRequest]) -> tuple[Path, ...]:
    """Fills the folder anew. Returns the files in it."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    build_packages(source, folder, "wheel", "sdist")
    write_manifests(source, folder)
    for wanted in images:
        build_image(source, wanted)
        write_image(source, folder, wanted)
    write_checksums(folder)
    return tuple(sorted(folder.iterdir()))


def write_manifests(source: Source, folder: Path) -> None:
    """`install.yaml`, and the chart as a chart repository serves it."""
    found = prepare_installation(read_templates(), (), source.version)
    for name, text in FORMATS["plain"](found).items():
        (folder / name).write_text(text, encoding="utf-8")
    chart = {f"{CHART}/{path}": text.encode() for path, text in FORMATS["helm-chart"](found).items()}
    pack(chart, folder / f"{CHART}-{source.version}.tgz", source.epoch)


def write_image(source: Source, folder: Path, wanted: ImageRequest) -> None:
    """The image that was built, as an OCI archive, and its bill of materials beside it."""
    name = f"upgradeplan-{source.version}-linux-{wanted.arch}"
    with tempfile.TemporaryDirectory() as layout:
        run("buildah", "push", "-q", wanted.tag, f"oci:{layout}:{source.version}")
        pack(files_below(Path(layout)), folder / f"{name}.oci.tar", source.epoch)
    packages = context_of(wanted.arch) / "root" / PACKAGES
    (folder / f"{name}.cdx.json").write_text(bill_of_materials(source, packages), encoding="utf-8")


def write_checksums(folder: Path) -> None:
    """As `sha256sum --check` reads them."""
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")
