"""The record of a run, as a rendering sees it: values captured, steps that have begun, objects that were made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

RecordedPhase = Sequence[Mapping[str | None, Any]]
"""All that is recorded of a phase, by node; None stands for the cluster."""


class Recorded(Protocol):
    """The record of a run so far. A step that has begun is not skipped, whatever its conditions say now."""

    def captured(self, phase: str, node: str | None) -> Mapping[str, Any]:
        """The values captured for the node, or for the cluster, by name."""
        ...

    def is_under_way(self, phase: str, step: str, node: str | None) -> bool:
        """True if the step has begun, and was not skipped; it may be over."""
        ...

    def made_by(self, phase: str, step: str, node: str | None) -> Collection[str] | None:
        """The templates whose objects the step has made; None if it has not made them yet, or if that is unknown."""
        ...

    def of(self, phase: str) -> RecordedPhase:
        """All that is recorded of the phase: where what two of these have for a node is equal, so are all other answers
        about it."""
        ...


class NothingRecorded:
    """Nothing has run: what a reviewer sees."""

    def captured(self, phase: str, node: str | None) -> Mapping[str, Any]:
        return {}

    def is_under_way(self, phase: str, step: str, node: str | None) -> bool:
        return False

    def made_by(self, phase: str, step: str, node: str | None) -> Collection[str] | None:
        return None

    def of(self, phase: str) -> RecordedPhase:
        return ()


NOTHING_RECORDED = NothingRecorded()
