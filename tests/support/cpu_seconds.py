"""How many seconds of CPU each test has used, with the processes that it has waited for, and what the budget says.

The clock on the wall would say how busy the machine was.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any

import pytest

BUDGETS: Mapping[str, float] = {"short": 480.0, "quick": 200.0}
"""Of `make test` and `make quick` in all: five minutes on two cores have 600, and part of them goes by in waiting."""
DEAR: Mapping[str, float] = {"slow": 1.0, "full": 4.0}
"""A test that uses more should have the mark. Who comes first in a process pays for what others find there, so these
are well above what the marks are for."""
_USED = "cpu seconds"
_MODULES = 10


def used() -> float:
    """By this process and by those that it has waited for."""
    return sum(os.times()[:4])


def used_with(workers: float | None) -> float:
    """By this process and its workers, which have told it; None where there are none."""
    return used() if workers is None else sum(os.times()[:2]) + workers


class CpuSeconds:
    """A plugin that writes into the report of a test what it has used. What is taken down after the last one, as a
    control plane is, is no part of that test."""

    def __init__(self) -> None:
        self._before = 0.0

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, object, object]:
        self._before = used()
        return (yield)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        until = used()
        try:
            return (yield)
        finally:
            until = used() if nextitem else until
            item.user_properties.append((_USED, round(until - self._before, 3)))


def lines(reports: Iterable[Any], marks: Iterable[str], total: float, budget: float) -> Iterator[str]:
    """For the end of a run that leaves out the tests with these marks. `reports` are those of the tests' ends; `total`
    is of all processes."""
    tests = [(seconds, report) for report in reports if (seconds := _seconds(report)) is not None]
    modules: dict[str, float] = defaultdict(float)
    for seconds, report in tests:
        modules[report.nodeid.partition("::")[0]] += seconds
    first = sorted(modules.items(), key=lambda item: -item[1])[:_MODULES]
    yield f"CPU: {total:.0f} s of {budget:.0f}; {sum(modules.values()):.0f} s in tests, most of them in"
    yield from (f"  {seconds:5.1f} s {module}" for module, seconds in first)
    for mark in marks:
        # A test that restarts an API server has waited for one that has worked for others too.
        known = {mark, "controlplane"}
        dear = [(s, report) for s, report in tests if s > DEAR[mark] and known.isdisjoint(report.keywords)]
        if dear:
            yield f"{len(dear)} tests used more than {DEAR[mark]:.0f} s and have no mark `{mark}`:"
            dear.sort(key=lambda item: -item[0])
            yield from (f"  {seconds:5.1f} s {report.nodeid}" for seconds, report in dear)


def _seconds(report: Any) -> float | None:
    return next((value for name, value in reversed(getattr(report, "user_properties", ())) if name == _USED), None)
