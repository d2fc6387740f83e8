"""The objects and readings of one round. A decision names nothing beforehand: what it looks at is read, and it is made
again until it has seen all that it looked at. So nothing can be looked at that was not read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, compress, filterfalse, repeat
from typing import Generic, TypeVar

from reconcile.objects import LISTED_IN_PART
from reconcile.observe.readings import Readings
from reconcile.observe.source import Source
from reconcile.probes.look import NOT_READ, Answer, Group, Look, Need, ReadFailure, Reading
from renderer.model.ref import Body, Ref, ref_of
from renderer.model.sharing import SameObject

_T = TypeVar("_T")


class NotReadError(LookupError):
    """Something was looked at that was not read: a bug in this program, or a journal of another version."""


class Snapshot:
    """A `Look` over what was read. A group also answers for its objects one by one, and for narrower groups. Raises
    `NotReadError` for anything else."""

    def __init__(self) -> None:
        self.objects: dict[Ref, Body | ReadFailure | None] = {}
        self.known: dict[Ref, Body | ReadFailure | None] = {}
        self.groups: dict[Group, tuple[Body, ...] | ReadFailure] = {}
        self.readings: dict[str, dict[str, Answer]] = {}
        self.read: set[Reading] = set()
        self._members: dict[Group, dict[Ref, Body]] = {}

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        if (known := self.known.get(ref, NOT_READ)) is not NOT_READ:
            return known
        for group, found in self.groups.items():
            if group.holds(ref) and not isinstance(found, ReadFailure):
                body = self._by_ref(group, found).get(ref)
                if body is not None or _is_whole(group):
                    self.known[ref] = body
                    return body
        raise NotReadError(ref)

    def put(self, answers: Mapping[Ref, Body | ReadFailure | None]) -> None:
        """Takes objects that were read one by one."""
        self.objects.update(answers)
        self.known.update(answers)

    def put_group(self, group: Group, found: tuple[Body, ...] | ReadFailure) -> None:
        self.groups[group] = found
        if not isinstance(found, ReadFailure) and not group.labels:
            self.known = {**self._by_ref(group, found), **self.known}

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        if group in self.groups:
            return self.groups[group]
        for wider, found in self.groups.items():
            if wider.includes(group) and (_is_whole(wider) or not group.name):
                return found if isinstance(found, ReadFailure) else _narrowed(SameObject(found), group)
        raise NotReadError(group)

    def reading(self, reading: Reading, name: str) -> Answer:
        """A missing answer, such as of a node that does not exist, is a failure."""
        answers = self.readings.get(reading.name, {})
        if name not in answers and not any(read.includes(reading) for read in self.read):
            raise NotReadError(reading)
        return answers.get(name, NOT_READ)

    def has_group_of(self, ref: Ref) -> bool:
        """True if a group was read that holds the object if it exists."""
        return any(
            group.holds(ref)
            and not isinstance(found, ReadFailure)
            and (_is_whole(group) or ref in self._by_ref(group, found))
            for group, found in self.groups.items()
        )

    def has_same(self, other: Snapshot) -> bool:
        """True if the same was read, and nothing that is another one each time."""
        return not (self.readings or other.readings) and self.objects == other.objects and self.groups == other.groups

    def _by_ref(self, group: Group, found: tuple[Body, ...]) -> dict[Ref, Body]:
        """The group's objects, under the version that was asked for, also where the server has a later one; every node
        of many asks for its own."""
        if group not in self._members:
            self._members[group] = _members_of(SameObject(found), group.api_version)
        return self._members[group]


@dataclass(frozen=True, slots=True)
class Needs:
    """The needs of a look: single objects, of which there may be thousands, and all else."""

    refs: tuple[Ref, ...] = ()
    others: tuple[Group | Reading, ...] = ()

    @classmethod
    def of(cls, needs: Iterable[Need]) -> Needs:
        if isinstance(needs, cls):
            return needs
        each = tuple(needs)
        refs = tuple(need for need in each if isinstance(need, Ref))
        return cls(refs, tuple(need for need in each if not isinstance(need, Ref)))

    def __iter__(self) -> Iterator[Need]:
        return chain(self.refs, self.others)


class _Noting:
    """A `Look` over a snapshot that notes what it is asked for, and says of what was not read that it was not."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._refs: dict[Ref, None] = {}
        self._others: dict[Group | Reading, None] = {}
        self.missing: dict[Need, None] = {}

    @property
    def asked(self) -> Needs:
        return Needs(tuple(self._refs), tuple(self._others))

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        self._refs[ref] = None
        try:
            return self._snapshot.get(ref)
        except NotReadError:
            self.missing[ref] = None
            return NOT_READ

    def get_all(self, refs: Collection[Ref]) -> Sequence[Body | ReadFailure | None]:
        """Most have been read."""
        self._refs.update(dict.fromkeys(refs))
        for ref in filterfalse(self._snapshot.known.__contains__, refs):
            self.get(ref)
        return [*map(self._snapshot.known.get, refs, repeat(NOT_READ))]

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        return self._answer(group, lambda: self._snapshot.list(group))

    def reading(self, reading: Reading, name: str) -> Answer:
        return self._answer(reading, lambda: self._snapshot.reading(reading, name))

    def _answer(self, need: Group | Reading, look: Callable[[], _T]) -> _T | ReadFailure:
        self._others[need] = None
        try:
            return look()
        except NotReadError:
            self.missing[need] = None
            return NOT_READ


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Generic[_T]):
    """An answer, all that was read for it, and what it looked at: most likely the next one looks there as well."""

    answer: _T
    snapshot: Snapshot
    looked_at: Needs


def judge(
    ask: Callable[[Look], _T],
    source: Source,
    readings: Readings,
    likely: Iterable[Need] = (),
    unless: Callable[[Snapshot], Judged[_T] | None] = lambda snapshot: None,
) -> Judged[_T]:
    """Asks until all that was looked at has been read; `ask` must be pure. What is `likely` looked at is read first;
    `unless` may know the answer that was given when the same had been read.

    Raises `Away` and its like.
    """
    snapshot = take(likely, source, readings)
    if (known := unless(snapshot)) is not None:
        return known
    while True:
        look = _Noting(snapshot)
        answer = ask(look)
        if not look.missing:
            return Judged(answer=answer, snapshot=snapshot, looked_at=look.asked)
        _read(snapshot, Needs.of(look.missing), source, readings)


def take(needs: Iterable[Need], source: Source, readings: Readings) -> Snapshot:
    """Reads everything that is needed. Raises `Away` and its like; an object that cannot be read is `ReadFailure`."""
    snapshot = Snapshot()
    _read(snapshot, Needs.of(needs), source, readings)
    return snapshot


def _read(snapshot: Snapshot, needs: Needs, source: Source, readings: Readings) -> None:
    """Adds what is needed and is not there yet. An object that a group holds is not read once more."""
    for group in (need for need in needs.others if isinstance(need, Group)):
        _list(snapshot, group, source)
    missing = [*filterfalse(snapshot.known.__contains__, needs.refs)]
    held = [*map(source.held().get, missing)]
    snapshot.put(dict(compress(zip(missing, held, strict=True), held)))
    for ref in filterfalse(snapshot.known.__contains__, missing):
        if not snapshot.has_group_of(ref):
            snapshot.put({ref: source.get(ref)})
    for reading in (need for need in needs.others if isinstance(need, Reading)):
        if not any(read.includes(reading) for read in snapshot.read):
            answers = readings.read(reading, _list(snapshot, reading.of, source))
            snapshot.readings.setdefault(reading.name, {}).update(answers)
            snapshot.read.add(reading)


def _list(snapshot: Snapshot, group: Group, source: Source) -> tuple[Body, ...]:
    try:
        found = snapshot.list(group)
    except NotReadError:
        found = source.list(group)
        snapshot.put_group(group, found)
    return () if isinstance(found, ReadFailure) else found


@lru_cache(maxsize=64)  # a source answers with the very same objects until one changes
def _members_of(found: SameObject, api_version: str) -> dict[Ref, Body]:
    return {ref_of(body)._replace(api_version=api_version): body for body in found.it}


def _is_whole(group: Group) -> bool:
    """True if an object of the group that was not read does not exist."""
    return bool(group.name) or (group.api_version, group.kind) not in LISTED_IN_PART


def _narrowed(found: SameObject, group: Group) -> tuple[Body, ...]:
    """Those of the narrower group."""
    return _within(_named(found).get(group.name, ()), group) if group.name else _all_within(found, group)


@lru_cache(maxsize=16)
def _all_within(found: SameObject, group: Group) -> tuple[Body, ...]:
    return _within(found.it, group)


@lru_cache(maxsize=16)
def _named(found: SameObject) -> dict[str, tuple[Body, ...]]:
    named: dict[str, tuple[Body, ...]] = {}
    for body in found.it:
        name = str(body["metadata"]["name"])
        named[name] = (*named.get(name, ()), body)
    return named


def _within(found: tuple[Body, ...], group: Group) -> tuple[Body, ...]:
    """Those of the group's namespace and labels; all of them where it names none."""
    if group.namespace:
        found = tuple(body for body in found if (body["metadata"].get("namespace") or "") == group.namespace)
    if group.labels:
        labels = set(group.labels)
        found = tuple(body for body in found if labels <= set((body["metadata"].get("labels") or {}).items()))
    return found
