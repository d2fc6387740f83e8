"""Carries out checks on a cluster of which more is read from round to round: each check until it has seen all that it
looks at, and no more often, since to judge a large cluster takes seconds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from reconcile.preflight.check_context import CheckContext
from reconcile.preflight.check_result import CheckReport, CheckResult
from reconcile.preflight.checking import report_of, run_check
from reconcile.probes.look import NOT_READ, Answer, Group, Look, ReadFailure, Reading
from renderer.catalog.checks import DeclaredCheck
from renderer.model.check import CheckTime
from renderer.model.ref import Body, Ref

_T = TypeVar("_T")


class CheckRounds:
    """The checks of some times, for one question."""

    def __init__(
        self,
        checks: Sequence[DeclaredCheck],
        context: CheckContext,
        when: Collection[CheckTime],
        node: str | None = None,
    ) -> None:
        self._checks = tuple(item for item in checks if set(item.check.when).intersection(when))
        self._context = context
        self._when = when
        self._node = node
        self._settled: dict[str, _Settled] = {}

    def report(self, look: Look) -> CheckReport:
        """The answers of this round. `look` knows all that it knew in the round before, unchanged, and more."""
        return report_of([self._result(declared, look) for declared in self._checks], self._context)

    def _result(self, declared: DeclaredCheck, look: Look) -> CheckResult:
        settled = self._settled.get(declared.check.id)
        if settled is not None:
            for ask in settled.asked:  # so that these looks are noted in each round
                ask(look)
            return settled.result
        noted = _Noted(look)
        result = run_check(declared, noted, self._context, self._when, self._node)
        if not noted.lacks:
            self._settled[declared.check.id] = _Settled(result=result, asked=tuple(noted.asked.values()))
        return result


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settled:
    """The answer of a check that has seen all that it looks at, and its questions."""

    result: CheckResult
    asked: tuple[Callable[[Look], object], ...]


class _Noted:
    """A `Look` that notes what it is asked, and whether something was not read yet."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self.asked: dict[object, Callable[[Look], object]] = {}
        self.lacks = False

    def get(self, ref: Ref) -> Body | ReadFailure | None:
        return self._noted(ref, lambda look: look.get(ref))

    def list(self, group: Group) -> tuple[Body, ...] | ReadFailure:
        return self._noted(group, lambda look: look.list(group))

    def reading(self, reading: Reading, name: str) -> Answer:
        return self._noted((reading, name), lambda look: look.reading(reading, name))

    def _noted(self, key: object, ask: Callable[[Look], _T]) -> _T:
        answer = ask(self._look)
        self.asked[key] = ask
        self.lacks = self.lacks or answer is NOT_READ
        return answer
