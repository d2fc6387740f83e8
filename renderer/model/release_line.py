"""A line of Harvester releases: the support matrix, its components, and notes on upgrades from and to it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from renderer.frozen import frozen


class NoteKind(StrEnum):
    """The one who deals with a note: a check of the cluster or of the hosts, the upgrade itself, or a person."""

    GATE = "gate"
    PROBE = "probe"
    ACT = "act"
    ADVISE = "advise"


@frozen
class ReleaseNote:
    """`before` and `after` are the versions that it is about: lines such as 1.7.x, or single ones. `checks` are the ids
    of those that look for it; `afterwards`: it is to be done, or looked at, once the upgrade has ended."""

    id: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    kind: NoteKind
    text: str
    remedy: str
    checks: tuple[str, ...] = ()
    afterwards: bool = False


@frozen
class UpgradePath:
    """The oldest version from which these releases can be upgraded to."""

    after: tuple[str, ...]
    minimum: str


@frozen
class ReleaseLine:
    """One document; `name` is the line, such as 1.8.x."""

    name: str
    paths: tuple[UpgradePath, ...]
    components: Mapping[str, str]
    notes: tuple[ReleaseNote, ...]
