"""Chooses the clusters of each wave: each cluster is in exactly one, and everything that is wrong is reported at once.

A share of all clusters is resolved to names here, since agents have no such thing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from renderer.clusters.waves import Wave, Waves
from renderer.errors import Problem
from renderer.frozen import frozen
from renderer.suggest import did_you_mean

Labels = Mapping[str, Mapping[str, str]]
"""The labels of each cluster, by its name."""

_NAMED = 5
"""Clusters that a message names; the others are counted."""


@frozen
class ChosenWave:
    """A wave with the names of its clusters, sorted."""

    name: str
    clusters: tuple[str, ...]
    pause: str | None = None


def choose_clusters(waves: Waves, labels: Labels) -> tuple[tuple[ChosenWave, ...], list[Problem]]:
    """The waves with their clusters, as far as they are known, and all problems."""
    claimed = {wave.name: _claimed(wave, labels) for wave in waves.waves}
    free = sorted({*labels} - {name for names in claimed.values() for name in names})
    for wave in waves.waves:
        if wave.percentage is not None:
            wanted = -(-len(labels) * wave.percentage // 100)
            claimed[wave.name], free = free[:wanted], free[wanted:]
    for wave in waves.waves:
        if wave.rest:
            claimed[wave.name], free = free, []
    chosen = tuple(
        ChosenWave(name=wave.name, clusters=tuple(sorted({*claimed[wave.name]})), pause=wave.pause)
        for wave in waves.waves
    )
    return chosen, [*_unknown(waves, labels), *_twice(waves, claimed), *_empty(waves, chosen), *_left(waves, free)]


def some_of(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def _claimed(wave: Wave, labels: Labels) -> list[str]:
    """The clusters that a wave names or selects."""
    if wave.selector:
        return [name for name, own in labels.items() if all(it.holds(own) for it in wave.selector)]
    return [name for name in wave.clusters if name in labels]


def _unknown(waves: Waves, labels: Labels) -> Iterator[Problem]:
    for wave in waves.waves:
        for name in wave.clusters:
            if name not in labels:
                hint = did_you_mean(name, labels)
                message = f"wave {wave.name!r} names the cluster {name!r}, which has no folder{hint}"
                yield _problem(waves, wave.line, message, "correct the name, or add the cluster's folder")


def _twice(waves: Waves, claimed: Mapping[str, Sequence[str]]) -> Iterator[Problem]:
    for wave in waves.waves:
        for name, count in Counter(claimed[wave.name]).items():
            if count > 1:
                message = f"wave {wave.name!r} names the cluster {name!r} twice"
                yield _problem(waves, wave.line, message, "keep one of them")
    owners: dict[str, list[str]] = {}
    for wave in waves.waves:
        for name in {*claimed[wave.name]}:
            owners.setdefault(name, []).append(wave.name)
    lines = {wave.name: wave.line for wave in waves.waves}
    for name, found in sorted(owners.items()):
        if len(found) > 1:
            message = f"the cluster {name!r} is in the waves {' and '.join(map(repr, found))}; one is expected"
            yield _problem(waves, lines[found[1]], message, "take it out of one of them")


def _empty(waves: Waves, chosen: Sequence[ChosenWave]) -> Iterator[Problem]:
    """Waves that would be there for nothing; of one with unknown names these are reported."""
    for wave, found in zip(waves.waves, chosen, strict=True):
        if not found.clusters and not wave.clusters:
            message = f"wave {wave.name!r} has no cluster"
            yield _problem(waves, wave.line, message, "correct what it selects, or remove it")


def _left(waves: Waves, left: Sequence[str]) -> Iterator[Problem]:
    if left:
        noun = "the cluster" if len(left) == 1 else "the clusters"
        message = f"{noun} {some_of(left)} {'is' if len(left) == 1 else 'are'} in no wave"
        yield _problem(waves, None, message, "add a wave with rest: true, or name them in one")


def _problem(waves: Waves, line: int | None, message: str, remedy: str) -> Problem:
    return Problem(reason="InvalidWaves", message=message, file=waves.file, line=line, remedy=remedy)
