"""`status`: how far a plan has come, and what it waits for."""

from __future__ import annotations

import sys
import time

import click

from reconcile.cli.connect import Target, cluster_options, wall_clock
from renderer.cli.answer import answer, output_option, say
from renderer.errors import ExitCode

_EVERY = 2.0


@click.command
@click.argument("name", required=False, metavar="[PLAN]")
@cluster_options
@click.option("--watch", "-w", is_flag=True, help="Show it again whenever it changes, until the plan has ended.")
@output_option
def status(name: str | None, target: Target, watch: bool, output: str) -> ExitCode:
    """Say how far a plan has come, what it waits for, and since when.

    Exit 0: it goes on or has succeeded; 1: it has failed.
    """
    from reconcile.cli.parts import parts_of, plan_named
    from reconcile.loop.reconciler import Reconciler
    from reconcile.report.progress import progress_lines, progress_of

    parts = parts_of(target)
    plan = plan_named(parts, name)
    reconciler = Reconciler(parts)
    shown: list[str] = []
    while True:
        model = progress_of(reconciler.look(plan), wall_clock())
        lines = list(progress_lines(model))
        if not watch or lines != shown:
            if shown and output == "text":
                say([""])
            answer(model, output, lambda _, now=lines: now)  # type: ignore[misc]
            sys.stdout.flush()
        shown = lines
        if not watch or model["phase"] in ("Succeeded", "Failed"):
            return ExitCode.NO if model["phase"] == "Failed" else ExitCode.YES
        time.sleep(_EVERY)
