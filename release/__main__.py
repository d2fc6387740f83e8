"""`python -m release image`: what `make image` runs."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Sequence

from release.image import ImageRequest, build_image
from release.site_packages import PLATFORMS
from release.source import source_of

_HERE = {"x86_64": "amd64", "aarch64": "arm64"}


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m release", description="Make what a release consists of.")
    commands = parser.add_subparsers(required=True)
    image = commands.add_parser("image", help="build the container image with buildah")
    image.add_argument("--base", default="", help="the image to put it over; by default the Containerfile's")
    image.add_argument("--arch", choices=PLATFORMS, default=_HERE.get(platform.machine(), "amd64"))
    image.add_argument("--tag", default="", help="by default localhost/upgradeplan:VERSION")
    image.set_defaults(run=_image)
    given = parser.parse_args(words)
    given.run(given)
    return 0


def _image(given: argparse.Namespace) -> None:
    source = source_of()
    tag = given.tag or f"localhost/upgradeplan:{source.version}"
    added = build_image(source, ImageRequest(arch=given.arch, tag=tag, base=given.base))
    print(f"built {tag} for {given.arch}: {added / 1e6:.0f} MB over its base, commit {source.commit}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
