"""What `rehearse` shows while it runs: few nodes one by one, many as counts, and without a terminal now and then."""

from __future__ import annotations

import io
from datetime import timedelta

import pytest

from reconcile.cli.rehearse import _START, _live
from reconcile.cli.screen import Screen
from reconcile.decide.decision import Decision
from reconcile.loop.round import Round
from reconcile.status.plan import PlanStatus

STATES = ("ImagePreloaded", "PreDraining", "WaitingReboot", "PostDrained")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown_on(stream: io.StringIO, nodes: int) -> list[str]:
    """The lines for so many nodes that are upgraded one after the other, a minute for each change."""
    at = _START
    states = {f"node-{number:03}": {"state": STATES[0]} for number in range(nodes)}
    with Screen(stream) as screen:
        show = _live(lambda: at, screen)
        for node in states:
            for state in STATES[1:]:
                at += timedelta(minutes=1)
                states = {**states, node: {"state": state}}
                status = PlanStatus(phase="NodeUpgrading", node_states=states)
                show(Round(name="up", decision=Decision(status=status)))
    return stream.getvalue().splitlines()


def test_of_many_nodes_a_line_is_written_now_and_then() -> None:
    lines = shown_on(io.StringIO(), 100)
    assert len(lines) < 50
    assert max(map(len, lines)) < 100
    assert lines[0] == " 0:01:00  NodeUpgrading        95% ImagePreloaded"
    assert lines[-1] == " 5:00:00  NodeUpgrading        100% PostDrained"


def test_of_few_nodes_each_change_is_a_line() -> None:
    lines = shown_on(io.StringIO(), 3)
    assert len(lines) == 9
    assert lines[0].endswith("node-000=PreDraining node-001=ImagePreloaded node-002=ImagePreloaded")


@pytest.mark.slow
def test_on_a_terminal_one_line_of_many_nodes_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    drawn = "\n".join(shown_on(Terminal(), 100))
    assert drawn.count("NodeUpgrading") == drawn.count("\x1b[2K") + 1 >= 300  # each time the line is erased first
    assert "1 PostDrained, 1 PreDraining, 98 ImagePreloaded" in drawn
