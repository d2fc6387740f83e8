"""`python -m release`: what `make image` and `make release` run."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from release.artefacts import make_release
from release.image import ImageRequest, build_image
from release.preparing import obstacles, prepare
from release.site_packages import PLATFORMS
from release.source import ROOT, source_of

_HERE = {"x86_64": "amd64", "aarch64": "arm64"}


def main(words: Sequence[str]) -> int:
    given = _parser().parse_args(words)
    given.run(given)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m release", description="Make what a release consists of.")
    commands = parser.add_subparsers(required=True)
    image = commands.add_parser("image", help="build the container image with buildah")
    image.add_argument("--arch", choices=PLATFORMS, default=_HERE.get(platform.machine(), "amd64"))
    image.add_argument("--tag", default="", help="by default localhost/upgradeplan:VERSION")
    image.set_defaults(run=_image)
    check = commands.add_parser("check", help="say what keeps a version from being released")
    check.set_defaults(run=_check)
    make = commands.add_parser("make", help="commit version and changelog, and fill dist/")
    make.add_argument("--arch", choices=PLATFORMS, action="append", help="of an image; repeatable")
    make.set_defaults(run=_make)
    for command in (check, make):
        command.add_argument("version", metavar="VERSION")
    for command in (image, make):
        command.add_argument("--base", default="", help="the image to put it over; by default the Containerfile's")
    return parser


def _image(given: argparse.Namespace) -> None:
    source = source_of()
    wanted = _wanted(given.arch, given.tag or f"localhost/upgradeplan:{source.version}", given.base)
    added = build_image(source, wanted)
    print(f"built {wanted.tag} for {given.arch}: {added / 1e6:.0f} MB over its base, commit {source.commit}")


def _wanted(arch: str, tag: str, base: str) -> ImageRequest:
    return ImageRequest(arch=arch, tag=tag, base=base)


def _check(given: argparse.Namespace) -> None:
    if found := list(obstacles(given.version)):
        raise SystemExit("\n".join(found))


def _make(given: argparse.Namespace) -> None:
    prepare(given.version, datetime.now(UTC).date())
    source = source_of()
    tag = f"localhost/upgradeplan:{source.version}"
    images = [_wanted(arch, f"{tag}-{arch}", given.base) for arch in given.arch or PLATFORMS]
    for path in make_release(source, ROOT / "dist", images):
        print(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}")
    print(f"next: git tag v{source.version} {source.commit}, then push it and publish dist/")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
