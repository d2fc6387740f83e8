"""What the names of images say: registry, tag and digest come and go, the last part of the path stays."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def not_needed(previous: Iterable[str], current: Collection[str], retained: Collection[str]) -> list[str]:
    """Image references of `previous` that `current` lacks, sorted; one whose last path part is in `retained` stays,
    whatever its registry, tag or digest (behaviour spec 3.8)."""
    return sorted(image for image in set(previous) - set(current) if _last_part(image) not in retained)


def _last_part(image: str) -> str:
    return image.rpartition("/")[2].partition("@")[0].partition(":")[0]
