"""`rehearse --report`: the file with the report on the run that was rehearsed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from reconcile.cli.journal import try_to_open
from renderer.errors import problem

if TYPE_CHECKING:
    from reconcile.loop.journal import JournalEntry
    from reconcile.report_page.recorded_run import RunMoment
    from reconcile.simulator.rehearsal.rehearsal import RehearsalResult
    from renderer.assemble import TemplateSet

Keep = Callable[["JournalEntry"], None]


class RunReportFile:
    """Keeps what the report is made of while the rehearsal runs; nothing where no file is named."""

    def __init__(self, file: str | None, template_set: TemplateSet) -> None:
        """Raises `Problems` for a file that cannot be written: before the work."""
        self._file, self._template_set = file, template_set
        self._moments: list[RunMoment] = []
        if file:
            self._write("")

    def kept_too(self, keep: Keep) -> Keep:
        """Keeps the entries of the journal for the report."""
        if not self._file:
            return keep
        from reconcile.report_page.recorded_run import moment_of

        def both(entry: JournalEntry) -> None:
            keep(entry)
            self._moments.append(moment_of(entry))

        return both

    def write(self, rehearsed: RehearsalResult, name: str) -> None:
        """Nothing is written of a plan that was gone before its first round."""
        if self._file and self._moments:
            self._write(self._text(rehearsed, name))

    def _text(self, rehearsed: RehearsalResult, name: str) -> str:
        from reconcile.cli.report import format_of, model_of, report_text
        from reconcile.report_page.recorded_run import RecordedRun, RunMoment, RunSource
        from reconcile.simulator.rehearsal.report import machine_facts

        plan = rehearsed.plan or {}
        end = RunMoment(time=rehearsed.ended, status=plan.get("status") or self._moments[-1].status)
        run = RecordedRun(
            name=name,
            source=RunSource.REHEARSAL,
            origin="",
            plan=plan,
            moments=(*self._moments, end) if rehearsed.succeeded else tuple(self._moments),
            machine_facts=machine_facts(rehearsed),
        )
        return report_text(model_of(run, self._template_set), format_of(str(self._file)), self._template_set)

    def _write(self, text: str) -> None:
        try:
            try_to_open(str(self._file))
            Path(str(self._file)).write_text(text, encoding="utf-8")
        except OSError as error:
            message = f"--report: {self._file} cannot be written: {error.strerror or error}"
            raise problem("CannotWrite", message, remedy="name a file in a folder that may be written to") from error
