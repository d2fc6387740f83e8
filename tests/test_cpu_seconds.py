"""What a short run says at its end about the CPU that its tests have used."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from support.cpu_seconds import CpuSeconds, lines, used, used_with


def ended(nodeid: str, seconds: float | None, *marks: str) -> Any:
    """The report of a test's end."""
    properties = [("another", 9.0)] if seconds is None else [("another", 9.0), ("cpu seconds", seconds)]
    return SimpleNamespace(nodeid=nodeid, user_properties=properties, keywords=dict.fromkeys(marks, 1))


REPORTS = [
    ended("tests/test_a.py::test_x[1]@lane", 4.5, "slow"),
    ended("tests/test_a.py::test_y", 0.5),
    ended("tests/test_b.py::test_z", 8.0),
    ended("tests/test_b.py::test_full", 9.0, "slow", "full"),
    ended("tests/test_c.py::test_of_another_run", None),
    ended("tests/test_c.py::test_an_outage", 4.2, "controlplane"),
]


def test_modules_come_in_order_and_then_what_should_have_a_mark() -> None:
    assert list(lines(REPORTS, ["full", "slow"], 30.4, 480.0)) == [
        "CPU: 30 s of 480; 26 s in tests, most of them in",
        "   17.0 s tests/test_b.py",
        "    5.0 s tests/test_a.py",
        "    4.2 s tests/test_c.py",
        "2 tests used more than 4 s and have no mark `full`:",
        "    8.0 s tests/test_b.py::test_z",
        "    4.5 s tests/test_a.py::test_x[1]@lane",
        "1 tests used more than 1 s and have no mark `slow`:",
        "    8.0 s tests/test_b.py::test_z",
    ]


def test_a_run_of_cheap_tests_is_told_no_mark() -> None:
    assert list(lines(REPORTS[1:2], ["full"], 1.0, 480.0)) == [
        "CPU: 1 s of 480; 0 s in tests, most of them in",
        "    0.5 s tests/test_a.py",
    ]


def test_what_workers_have_used_is_counted() -> None:
    assert used_with(1000.0) == pytest.approx(used_with(0.0) + 1000.0, abs=1.0)
    assert used_with(0.0) <= used_with(None) <= used()


def test_a_test_is_told_what_it_has_used(request: Any) -> None:
    """By the plugin of this very run, which has begun with this test before it was set up."""
    (plugin,) = (each for each in request.config.pluginmanager.get_plugins() if isinstance(each, CpuSeconds))
    before = used()
    while used() < before + 0.02:
        pass
    teardown = plugin.pytest_runtest_teardown(request.node, request.node)
    next(teardown)
    teardown.close()
    name, seconds = request.node.user_properties.pop()
    assert (name, 0.02 <= seconds < 100) == ("cpu seconds", True)
