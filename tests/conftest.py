"""The control plane for tests that ask for it, what may run side by side, and what a short run leaves out.

Without Go and without built binaries the tests on a control plane are skipped and counted; under CI=true they fail.
"""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from agents import engines
from controlplane import binaries, build, cluster
from hypothesis import HealthCheck, settings
from support import container_image, cpu_seconds
from support.debian_packages import why_not_installed
from support.examples import FULL, SHORT

CRDS = Path(__file__).resolve().parents[1] / "schemas" / "crds"
DEFINITIONS = Path(__file__).resolve().parent / "conformance" / "definitions"
MARKER = "controlplane"
PROGRAMS: Mapping[str, tuple[str, Callable[[], str | None]]] = {
    "engines": ("of the engines of Flux and Argo CD", engines.why_absent),
    "image": ("of the container image", container_image.why_absent),
    "browser": ("in a browser", partial(why_not_installed, "chromium")),
}
"""Marks of tests that need programs of Debian: which tests these are, and why the programs are not there."""
LEFT_OUT = pytest.StashKey[Counter[str]]()
CPU_OF_WORKERS = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--short",
        action="store_true",
        help="leave out what is marked `full`, and most examples of each property, as `make test` does",
    )
    parser.addoption(
        "--rerun-real",
        action="store_true",
        help="run a failed test on real processes once more, and print both outcomes, as `make test-full` does",
    )
    parser.addoption("--quick", action="store_true", help="leave out `slow` and `controlplane` too (`make quick`)")


def pytest_configure(config: pytest.Config) -> None:
    gc.disable()  # until all tests are collected: hardly anything of that is garbage
    config.pluginmanager.register(cpu_seconds.CpuSeconds())
    for name, count in (("full", FULL), ("short", SHORT)):  # a machine with much else to do is no failure
        unhurried = settings(max_examples=count, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        settings.register_profile(name, unhurried)
    settings.load_profile("short" if _is_short(config) else "full")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # As a shell without job control starts what stands before `&`. Programs that tests interrupt would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """Modules and tests live to the end: Python need not look through them for garbage, and may look less often."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


def _is_short(config: pytest.Config) -> bool:
    return bool(config.getoption("short") or config.getoption("quick"))


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[cluster.ControlPlane]:
    """One for the whole session, built first if need be. Tests that write use namespaces of their own, or wipe()."""
    with cluster.running(_built(request.config), [CRDS, DEFINITIONS]) as plane:
        yield plane


@pytest.fixture(scope="session")
def built_engines() -> engines.Engines:
    """The engines of Flux and Argo CD, built first if need be."""
    return engines.build(lambda text: None)


@pytest.fixture
def wiped_control_plane(control_plane: cluster.ControlPlane) -> cluster.ControlPlane:
    """The same, as empty as after its start. It is wiped before, not after, so that a failed test leaves its traces."""
    control_plane.wipe()
    return control_plane


@pytest.fixture(scope="module")
def clean_control_plane(control_plane: cluster.ControlPlane) -> cluster.ControlPlane:
    """Wiped once for the module, for those who ask it many times in one test."""
    control_plane.wipe()
    return control_plane


# ------------------------------------------------------------------------------------------- what runs, and beside what


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whoever asks for the control plane has the marker; whoever shares a lane has its name."""
    for item in items:
        if "control_plane" in getattr(item, "fixturenames", ()):
            item.add_marker(MARKER)
    marks = {item: _Marks(item) for item in items}
    _leave_out(config, items, marks)
    for item in items:
        if config.pluginmanager.hasplugin("xdist"):
            item.add_marker(pytest.mark.xdist_group(marks[item].lane))
        if config.getoption("rerun_real") and marks[item].real:
            item.add_marker(pytest.mark.flaky(reruns=1))
    items.sort(key=lambda item: marks[item].turn)


class _Marks:
    """What the marks of a test say, looked up once: there are thousands of tests, and each process collects them."""

    def __init__(self, item: pytest.Item) -> None:
        self.all = tuple(item.iter_markers())
        self._file = item.nodeid.partition("::")[0]
        self._names = {mark.name for mark in self.all}

    @property
    def real(self) -> bool:
        """True if the test needs processes that are not ours."""
        return not self._names.isdisjoint((MARKER, *PROGRAMS))

    @property
    def lane(self) -> str:
        """Tests of one lane run one after the other. Those on a control plane are in three lanes, each with a control
        plane of its own: whole upgrades and commands, agents and the image (full runs only), and all others. What needs
        none goes a module at a time."""
        named = next((str(mark.args[0]) for mark in self.all if mark.name == "lane"), "")
        return named or ("requests" if MARKER in self._names else self._file)

    @property
    def turn(self) -> tuple[bool, bool, bool]:
        """The lanes first, then what takes long, so that a run does not end with one of these alone. What needs the
        image stays together, with a control plane or without: it is built for its module."""
        return not self.real, "lane" not in self._names, "slow" not in self._names


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: Sequence[str]) -> None:
    """pytest-xdist appends the lane to a test's id. Where a version of pytest ignores that, each test would go to any
    worker: whatever a lane shares would be made once a worker, and nothing but the clock would show it."""
    if node.config.getoption("dist") == "loadgroup" and not all("@" in each for each in ids):
        pytest.exit("pytest-xdist does not keep lanes together under this version of pytest", returncode=3)


def _leave_out(config: pytest.Config, items: list[pytest.Item], marks: Mapping[pytest.Item, _Marks]) -> None:
    names = [name for option, name in _OPTIONS if config.getoption(option)]
    left_out = {item: mark for item in items for mark in marks[item].all if mark.name in names}
    config.stash[LEFT_OUT] = Counter(_why(mark) for mark in left_out.values())
    if left_out:
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


_OPTIONS = (("short", "full"), ("quick", "full"), ("quick", "slow"), ("quick", MARKER))


def _why(mark: pytest.Mark) -> str:
    """`@pytest.mark.full("why it is left out, and what stands for it")`."""
    return f"{mark.name}: {mark.args[0]}" if mark.args else mark.name


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker's own counts are handed to the process that prints."""
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None:
        left_out = session.config.stash[LEFT_OUT]
        output["left_out"] = dict(left_out)
        output["cpu"] = cpu_seconds.used()


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Of pytest-xdist: a worker has ended. All of them leave out the same."""
    stash, output = node.config.stash, getattr(node, "workeroutput", {})
    stash[LEFT_OUT] = Counter(output.get("left_out", {}))
    stash[CPU_OF_WORKERS] = stash.get(CPU_OF_WORKERS, 0.0) + output.get("cpu", 0.0)


# ------------------------------------------------------------------------------------------------------ what is printed


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker(MARKER) and (reason := binaries.why_absent()):
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}, and CI=true wants it tested", pytrace=False)
        pytest.skip(reason)
    for marker, (_, why_absent) in PROGRAMS.items():
        if item.get_closest_marker(marker) and (reason := why_absent()):
            pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in (*_skipped(terminalreporter.getreports("skipped")), *_left_out(config)):
        terminalreporter.write_line(line, yellow=True)
    if _is_short(config):
        ends = [report for reports in terminalreporter.stats.values() for report in reports if _is_end(report)]
        marks = sorted({name for option, name in _OPTIONS if config.getoption(option) and name in cpu_seconds.DEAR})
        budget = cpu_seconds.BUDGETS["quick" if config.getoption("quick") else "short"]
        total = cpu_seconds.used_with(config.stash.get(CPU_OF_WORKERS, None))
        for line in cpu_seconds.lines(ends, marks, total, budget):
            terminalreporter.write_line(line)


def _is_end(report: Any) -> bool:
    return getattr(report, "when", "") == "teardown"


def _skipped(reports: Sequence[Any]) -> Iterator[str]:
    skipped = [report for report in reports if MARKER in report.keywords]
    if skipped and (reason := binaries.why_absent()):
        yield f"{len(skipped)} tests on the real control plane were SKIPPED: {reason} (`make controlplane` builds it)"

    for marker, (which, why_absent) in PROGRAMS.items():
        marked = [report for report in reports if marker in report.keywords]
        if marked and (reason := why_absent()):
            yield f"{len(marked)} tests {which} were SKIPPED: {reason}"


def _left_out(config: pytest.Config) -> Iterator[str]:
    left_out = config.stash.get(LEFT_OUT, None)
    if left_out:
        yield f"{left_out.total()} tests were left out; `make test-full` runs them:"
        yield from (f"  {count} {why}" for why, count in sorted(left_out.items()))
    if _is_short(config):
        yield f"Properties were tried with {SHORT} % of their examples; `make test-full` tries all of them."


def _built(config: pytest.Config) -> binaries.Binaries:
    if (found := binaries.built()) is not None:
        return found
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    capture: Any = config.pluginmanager.get_plugin("capturemanager")

    def say(text: str) -> None:
        if reporter is None:  # in a worker, where nobody reads; `make test` has built it before
            return
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(text)
            reporter.flush()

    try:
        return build.build(say)
    except build.BuildError as failed:
        pytest.fail(str(failed), pytrace=False)
