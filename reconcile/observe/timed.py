"""Reads side by side, and waits for them until a deadline: what has not answered by then is a read failure.

For callers that have to answer within seconds, such as an admission webhook. A cluster that is away is a failure of
each read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any

from reconcile.cluster.errors import ClusterError
from reconcile.objects import LISTED_IN_PART
from reconcile.observe.selection import read_failures
from reconcile.observe.source import Source
from reconcile.probes.look import Group, ReadFailure
from renderer.model.ref import Body, Ref

_REMEDY = "try again; `kubectl get --raw '/readyz?verbose'` shows whether the API server is well"


_FIRST = 0.6
"""The part of the time that the likely reads have: what is found to be needed by then must have some as well."""


@dataclass(frozen=True, slots=True)
class _Read:
    """A read under way, and how many seconds after the beginning it is given up."""

    future: Future[Any]
    seconds: float


class TimedSource:
    """A `Source` for one question, to be answered within `seconds` on the monotonic `clock`. Reads that are under way
    then end when their connection does."""

    def __init__(self, source: Source, pool: Executor, seconds: float, clock: Callable[[], float]) -> None:
        self._source = source
        self._pool = pool
        self._seconds = seconds
        self._clock = clock
        self._began = clock()
        self._reads: dict[Ref | Group, _Read] = {}
        self._failures: dict[ReadFailure, None] = {}

    @property
    def failures(self) -> tuple[ReadFailure, ...]:
        """Those of all that was read, each once."""
        return tuple(self._failures)

    def begin(self, groups: Iterable[Group]) -> None:
        """Reads what is likely to be asked for."""
        for group in groups:
            self._begun(group, self._seconds * _FIRST)

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        """Found in the list of its kind, which others need as well, where there is one."""
        if (ref.api_version, ref.kind) in LISTED_IN_PART:
            found: Body | ReadFailure | None = self._answer(ref)
            return found
        listed = self.list(Group(api_version=ref.api_version, kind=ref.kind, namespace=ref.namespace))
        if isinstance(listed, ReadFailure):
            return listed
        return next((body for body in listed if body["metadata"]["name"] == ref.name), None)

    def held(self) -> Mapping[Ref, Body]:
        return {}

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        found: tuple[Body, ...] | ReadFailure = self._answer(group)
        return found

    def note(self, body: Body) -> None:
        return None

    def give_up(self) -> None:
        """Takes back what the pool has not begun."""
        for read in self._reads.values():
            read.future.cancel()

    def _begun(self, need: Ref | Group, seconds: float) -> _Read:
        if need not in self._reads:
            read: Callable[[Any], Any] = self._source.get if isinstance(need, Ref) else self._source.list
            self._reads[need] = _Read(self._pool.submit(read, need), seconds)
        return self._reads[need]

    def _answer(self, need: Ref | Group) -> Any:
        read = self._begun(need, self._seconds)
        left = self._began + read.seconds - self._clock()
        try:
            answer = read.future.result(timeout=max(0.0, left))
        except TimeoutError:
            answer = ReadFailure(why=f"{_what(need)}: no answer within {read.seconds:.1f} s", remedy=_REMEDY)
        except ClusterError as error:
            answer = read_failures(error)
        if isinstance(answer, ReadFailure):
            self._failures[answer] = None
        return answer


def _what(need: Ref | Group) -> str:
    if isinstance(need, Ref):
        return str(need)
    return f"{need.kind} objects" + (f" of namespace {need.namespace}" if need.namespace else "")
