"""Finds what is known about an upgrade from the version that runs now to that of the plan: components and notes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from renderer.catalog.releases import components_of, notes_between
from renderer.frozen import frozen
from renderer.model.release_line import ReleaseLine, ReleaseNote


@frozen
class ComponentChange:
    """A component and its versions; empty where they are not known."""

    name: str
    before: str
    after: str


@frozen
class UpgradeNotes:
    """`components` are all that either release is known to have."""

    current: str
    target: str
    components: tuple[ComponentChange, ...]
    notes: tuple[ReleaseNote, ...]


def upgrade_notes(names: Mapping[str, Any], lines: Sequence[ReleaseLine]) -> UpgradeNotes | None:
    """`names` are those that are given to checks. None where one of the versions is not known."""
    current, target = names["cluster"]["previousVersion"], names["release"].get("harvester")
    if not current or not target:
        return None
    return UpgradeNotes(
        current=current,
        target=target,
        components=tuple(_changes(components_of(lines, current), components_of(lines, target))),
        notes=notes_between(lines, current, target),
    )


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[ComponentChange]:
    for name in dict.fromkeys((*before, *after)):
        yield ComponentChange(name=name, before=before.get(name, ""), after=after.get(name, ""))
