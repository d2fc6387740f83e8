"""Agents that deliver an object from Git, by the marks that they leave on it. The marks are rows of
`delivery/rules.yaml`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from renderer.frozen import frozen


@frozen
class AgentMarks:
    """The marks of one agent: names of annotations and labels, and of field managers. A weak label is one that others
    set as well: it counts only where nothing else says who delivers the object."""

    agent: str
    annotations: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    managers: tuple[str, ...] = ()
    weak_labels: tuple[str, ...] = ()


@frozen
class FoundMark:
    """An agent, and the mark by which it is known: `label x`, `annotation y`, `field manager z`."""

    agent: str
    mark: str


def agents_of(body: Mapping[str, Any], table: Iterable[AgentMarks]) -> tuple[FoundMark, ...]:
    """Each agent once; none for an object that nobody delivers."""
    metadata, rows = body.get("metadata") or {}, tuple(table)
    sure = [FoundMark(agent=row.agent, mark=mark) for row in rows for mark in [*_sure(metadata, row)][:1]]
    weak = [
        FoundMark(agent=row.agent, mark=f"label {name}")
        for row in rows
        for name in row.weak_labels
        if name in (metadata.get("labels") or {})
    ]
    return tuple(sure or weak)


def _sure(metadata: Mapping[str, Any], row: AgentMarks) -> Iterator[str]:
    annotations, labels = (metadata.get(part) or {} for part in ("annotations", "labels"))
    managers = {entry.get("manager") for entry in metadata.get("managedFields") or ()}
    yield from (f"annotation {name}" for name in row.annotations if name in annotations)
    yield from (f"label {name}" for name in row.labels if name in labels)
    yield from (f"field manager {name}" for name in row.managers if name in managers)
