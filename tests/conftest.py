"""The control plane for tests that ask for it, and a plain word about those that could not have it.

Without Go and without built binaries such tests are skipped and counted; under CI=true they fail.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from controlplane import binaries, build, cluster

CRDS = Path(__file__).resolve().parents[1] / "schemas" / "crds"
MARKER = "controlplane"


@pytest.fixture(scope="session")
def control_plane(request: pytest.FixtureRequest) -> Iterator[cluster.ControlPlane]:
    """One for the whole session, built first if need be. Tests that write use namespaces of their own, or wipe()."""
    with cluster.running(_built(request.config), CRDS) as plane:
        yield plane


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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whoever asks for the fixture has the marker."""
    for item in items:
        if "control_plane" in getattr(item, "fixturenames", ()):
            item.add_marker(MARKER)


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker(MARKER) and (reason := binaries.why_absent()):
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason}, and CI=true wants it tested", pytrace=False)
        pytest.skip(reason)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.getreports("skipped") if MARKER in report.keywords]
    if skipped and (reason := binaries.why_absent()):
        terminalreporter.write_line(
            f"{len(skipped)} tests on the real control plane were SKIPPED: {reason} (`make controlplane` builds it)",
            yellow=True,
        )


def _built(config: pytest.Config) -> binaries.Binaries:
    if (found := binaries.built()) is not None:
        return found
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    capture: Any = config.pluginmanager.get_plugin("capturemanager")

    def say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            reporter.ensure_newline()
            reporter.write_line(text)
            reporter.flush()

    try:
        return build.build(say)
    except build.BuildFailed as failed:
        pytest.fail(str(failed), pytrace=False)
