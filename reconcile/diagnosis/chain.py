"""Carries out the pattern of a known cause: the objects with which it begins, and the chain that goes on from each.

A match is a mapping from the names of the chain to what was found. What could not be read matches nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconcile.diagnosis.joins import leads_to
from reconcile.diagnosis.situation import text
from reconcile.probes.evaluate import holds, matching, present_ref
from reconcile.probes.look import Look, ProbeContext, ReadFailure
from renderer.catalog.causes import OBJECT
from renderer.model.known_cause import Join, Link, LogLink, Pattern, Take
from renderer.model.path import Path, look_up
from renderer.model.probe import EveryTarget, Predicate
from renderer.model.ref import Body, Ref, ref_of
from renderer.patterns import compiled

_LAST_LINES = 3
Match = Mapping[str, Any]
Index = Mapping[tuple[Any, ...], Sequence[Body]]
"""The objects to which a link leads, by the values of the fields that have to be equal."""
Logs = Callable[[Ref], Mapping[str, str]]
"""The ends of the logs of a pod, by container; none where they are not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisInput:
    """The means by which patterns are carried out. `indexes` are kept, so that of many objects none is compared with
    each of many others."""

    look: Look
    probes: ProbeContext
    logs: Logs
    indexes: dict[Link, Index] = field(default_factory=dict, repr=False, compare=False)


def matches_of(pattern: Pattern, chain: tuple[Link | LogLink, ...], given: DiagnosisInput) -> Iterator[Match]:
    """All matches, in the order of namespace and name."""
    target = pattern.target
    if isinstance(target, EveryTarget):
        begins: Iterable[Body] = _members(target, pattern.all, given)
    else:
        found = given.look.get(present_ref(target, given.look))
        begins = () if found is None or isinstance(found, ReadFailure) else (found,)
        begins = [body for body in begins if _holds(pattern.all, body, given)]
    for body in begins:
        yield from _follow({OBJECT: body}, chain, given)


def _follow(known: Match, chain: tuple[Link | LogLink, ...], given: DiagnosisInput) -> Iterator[Match]:
    if not chain:
        yield known
        return
    link, rest = chain[0], chain[1:]
    for found in _found(link, known[link.start], given):
        yield from _follow({**known, link.name: found}, rest, given)


def _found(link: Link | LogLink, start: Body, given: DiagnosisInput) -> Iterable[Any]:
    """Everything that a link may go on with; nothing where there is no match."""
    if isinstance(link, LogLink):
        return _line(link, start, given)
    joined = [body for body in _candidates(link, start, given) if leads_to(link, start, body)]
    if link.take is Take.NEWEST:
        joined = sorted(joined, key=lambda body: text(body, "metadata", "creationTimestamp"))[-1:]
    found = [body for body in joined if _holds(link.all, body, given)]
    match link.take:
        case Take.FIRST:
            return found[:1]
        case Take.LIST:
            return [tuple(found)]
        case Take.NONE:
            return [] if found else [()]
        case _:
            return found


def _candidates(link: Link, start: Body, given: DiagnosisInput) -> Iterable[Body]:
    """The objects to which the link may lead from this one."""
    if link.join is not Join.FIELDS:
        return _members(link.target, (), given)
    if link not in given.indexes:
        index: dict[tuple[Any, ...], list[Body]] = {}
        for body in _members(link.target, (), given):
            index.setdefault(_values(body, [theirs for theirs, _ in link.fields]), []).append(body)
        given.indexes[link] = index
    return given.indexes[link].get(_values(start, [ours for _, ours in link.fields]), ())


def _values(body: Body, paths: Iterable[Path]) -> tuple[Any, ...]:
    """The values as text, by which they are found; the join compares the values themselves."""
    return tuple(repr(look_up(body, path)) for path in paths)


def _members(target: EveryTarget, predicates: tuple[Predicate, ...], given: DiagnosisInput) -> Iterable[Body]:
    """The objects of a kind that hold up. A kind that could not be read has none."""
    found = matching(target, given.look, given.probes)
    return () if isinstance(found, ReadFailure) else (body for body in found if _holds(predicates, body, given))


def _holds(predicates: tuple[Predicate, ...], body: Body, given: DiagnosisInput) -> bool:
    return holds(predicates, body, given.look, given.probes)


def _line(link: LogLink, pod: Body, given: DiagnosisInput) -> list[Mapping[str, str]]:
    """The last line that matches, of any container, and the lines before it."""
    pattern, longest = compiled(link.matches)
    for container, log in given.logs(ref_of(pod)).items():
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        for place in reversed(range(len(lines))):
            if found := pattern.search(lines[place][:longest]):
                last = lines[max(0, place + 1 - _LAST_LINES) : place + 1]
                said = {"text": lines[place], "lines": " | ".join(last), "container": container}
                return [{**found.groupdict(default=""), **said}]
    return []
