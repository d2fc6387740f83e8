"""The run of one plan by `apply`: its progress on the screen, and when the manager stops."""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from reconcile.cli.connect import wall_clock
from reconcile.cli.screen import Screen, newest_lines
from renderer.cli.answer import say
from renderer.errors import ExitCode

if TYPE_CHECKING:
    from reconcile.loop.manager import Manager
    from reconcile.loop.reconciler import Reconciler
    from reconcile.loop.round import Round
    from reconcile.status.plan import PlanStatus

_ENDED_BY_SIGNAL = 128
"""Shells add the signal's number, as for a program that a signal ended."""


class PlanRun:
    """Shows the progress of one plan, and stops the manager once the plan has ended or a signal came."""

    def __init__(self, plan: str, onlooker: Reconciler, screen: Screen) -> None:
        self._plan = plan
        self._onlooker = onlooker
        self._screen = screen
        self._stop: Callable[[], None] = lambda: None
        self._ended: tuple[str, str] | None = None
        self._signal: int | None = None

    def run(self, manager: Manager) -> None:
        self._stop = manager.stop
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        with self._screen:
            manager.run()

    def report(self) -> int:
        """Prints how it ended, and answers the exit status."""
        from reconcile.status.plan import FAILED, SUCCEEDED

        if self._ended is None:
            say([f"stopped; to continue, run: upgradeplan apply --plan {self._plan}"])
            return ExitCode.NO if self._signal is None else _ENDED_BY_SIGNAL + self._signal
        phase, why = self._ended
        if phase == FAILED:
            say([": ".join(filter(None, (self._plan, phase, why))), f"  next: upgradeplan explain {self._plan}"])
        else:
            say([f"{self._plan}: {phase}"])
        return ExitCode.YES if phase == SUCCEEDED else ExitCode.NO

    def log(self, what: str, fields: Mapping[str, object]) -> None:
        """Shows what rounds do not: that the API server is away or refuses, or that another loop leads."""
        if "why" in fields:
            standby = what == "standing by"
            text = f"{fields['why']}; showing its progress" if standby else f"{what}: {fields['why']}"
            self._screen.show(newest_lines([text]), [text], f"{wall_clock():%H:%M:%S} ")

    def on_round(self, done: Round) -> None:
        if done.name != self._plan:
            return
        _show(done, self._screen)
        if done.over:
            self._end(done.decision.status if done.decision else None)

    def on_standby(self) -> None:
        """Follows a plan that another loop runs, until it has ended or is gone."""
        from reconcile.cluster.errors import ClusterError
        from reconcile.status.plan_body import status_of

        try:
            done = self._onlooker.look(self._plan)
        except ClusterError as error:
            self.log("unavailable", {"why": error.problem.message})
            return
        if done.plan is not None:
            _show(done, self._screen)
        if done.is_at_its_end:
            self._end(status_of(done.plan) if done.plan else None)

    def _end(self, status: PlanStatus | None) -> None:
        """Notes how the plan ended, and why; it is gone if it has no status any more."""
        said = (status.condition("Progressing") or {}).get("message", "") if status else ""
        self._ended = (status.phase, said) if status else ("gone", "")
        self._stop()

    def _on_signal(self, number: int, _: object) -> None:
        self._signal = number
        self._stop()


def _show(done: Round, screen: Screen) -> None:
    """A tree on a terminal; elsewhere a line for whatever is new: phase, node, wait."""
    from reconcile.report.progress import progress_of
    from reconcile.report.progress_view import progress_view, wait_lines

    model = progress_of(done, wall_clock())
    states = (f"{node['name']}={node['state']}" for node in model["nodes"] if node["state"])
    news = [" ".join((model["phase"], *states)), *wait_lines(model)] if done.decision else []
    problems = [f"problem: {text}" for text in done.problems]
    screen.show(lambda room: progress_view(model, room), [*news, *problems], f"{wall_clock():%H:%M:%S} ")
