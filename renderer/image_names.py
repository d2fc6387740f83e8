"""Reads the names of images. One image has several: registry, `library/` and `latest` may be left out, and a digest
beside a tag says which build it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

_REPOSITORY = (
    r"(?:(?=[^:/]{1,253}(?::|/))[a-zA-Z0-9-]+(?:\.[a-zA-Z0-9-]+)*(?::[0-9]{1,5})?/)?"
    r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*"
)
_TAG = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"


def is_image(text: str) -> bool:
    """True if a runtime would read it as the name of an image."""
    return bool(re.fullmatch(f"{_REPOSITORY}(?::{_TAG})?(?:@sha256:[0-9a-f]{{64}})?", text))


def is_repository(text: str) -> bool:
    """A name without tag and digest."""
    return bool(re.fullmatch(_REPOSITORY, text))


def is_tag(text: str) -> bool:
    return bool(re.fullmatch(_TAG, text))


def not_needed(previous: Iterable[str], current: Iterable[str], retained: Collection[str]) -> list[str]:
    """Image references of `previous` that `current` lacks, sorted; one whose last path part is in `retained` stays,
    whatever its registry, tag or digest. Another spelling of an image that is needed is needed:
    a runtime would remove the image itself."""
    needed = {canonical(image) for image in current}
    return sorted(
        image for image in set(previous) if canonical(image) not in needed and _last_part(image) not in retained
    )


def canonical(image: str) -> str:
    """The one long name: `nginx` is `docker.io/library/nginx:latest`, as every runtime reads it
    (github.com/distribution/reference, "Familiar names"). Of a name with a tag the digest is left out."""
    name, _, digest = image.partition("@")
    path, colon, tag = name.rpartition(":")
    if not colon or "/" in tag:  # a port, or no tag at all
        path, tag = name, ""
    registry, slash, rest = path.partition("/")
    if not slash or not ("." in registry or ":" in registry or registry == "localhost"):
        registry, rest = "docker.io", path
    if registry in ("docker.io", "index.docker.io"):
        registry, rest = "docker.io", rest if "/" in rest else f"library/{rest}"
    return f"{registry}/{rest}" + (f"@{digest}" if digest and not tag else f":{tag or 'latest'}")


def _last_part(image: str) -> str:
    return image.rpartition("/")[2].partition("@")[0].partition(":")[0]
