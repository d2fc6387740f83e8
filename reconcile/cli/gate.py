"""`gate`: waits for the gates of one phase, in a Job that an agent delivers with the phase."""

from __future__ import annotations

import re
import signal
import sys
import time
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconcile.cli.connect import Target, connect_to, dial_of, wall_clock
from renderer.cli.answer import redactor, say
from renderer.errors import ExitCode, problem
from renderer.files.filesystem import require_file

if TYPE_CHECKING:
    from reconcile.gate.gate_wait import GateAnswer, GateWait

_PAUSE = 5.0
_SECONDS = {"s": 1, "m": 60, "h": 3600}
_FROM_REMEDY = "mount the rendered ConfigMap, or give --from"
LONGEST_MESSAGE = 4096
"""Bytes that Kubernetes keeps of a termination message."""


@click.command
@click.argument("phase")
@click.option(
    "--from",
    "file",
    type=click.Path(path_type=Path),
    default="/etc/upgradeplan/gate.yaml",
    show_default=True,
    metavar="FILE",
    help="The document that was rendered beside the Job.",
)
@click.option("--timeout", metavar="DURATION", help="Give up after this time, such as 30m. Default: never.")
@click.option("--kubeconfig", default="", metavar="FILE", help="The kubeconfig file to use. In a pod not needed.")
@click.option(
    "--termination-log",
    type=click.Path(path_type=Path),
    default="/dev/termination-log",
    show_default=True,
    metavar="FILE",
    help="Where to leave the reason of the wait or the failure, for whoever looks at the pod.",
)
def gate(phase: str, file: Path, timeout: str | None, kubeconfig: str, termination_log: Path) -> ExitCode:
    """Wait until the gates of a phase have passed.

    \b
    Examples:
      upgradeplan gate ImagePreload --from gate.yaml
      upgradeplan gate ImagePreload --from gate.yaml --timeout 30m

    Runs in a Job that an agent delivers with the phase; what it waits for was rendered beside the Job. Logs each
    change. While the API server is unavailable it waits, and that time does not count. Exits 0 if all gates have
    passed, 1 if one has failed or the time is over, 3 if the time is over and it could not look.
    """
    limit = _duration(timeout)
    wait = _wait_of(phase, file, kubeconfig)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.NO))  # the first process of a container has no default
    answer = _follow(wait, limit, termination_log)
    return _exit_code(answer)


def _follow(wait: GateWait, limit: timedelta | None, termination_log: Path) -> GateAnswer:
    """Looks until the gates have passed or failed, or the time is over; says what is new."""
    from reconcile.probes.verdict import ProbeResult

    said: GateAnswer | None = None
    while True:
        now = wall_clock()
        answer = wait.look(now)
        if answer != said:
            report(now, answer, termination_log)
        said = answer
        if answer.outcome in (ProbeResult.PASSED, ProbeResult.FAILED) or (limit is not None and wait.looked >= limit):
            return answer
        time.sleep(_PAUSE)


def report(now: datetime, answer: GateAnswer, termination_log: Path) -> None:
    """Logs the answer, and leaves it where Kubernetes looks when the pod ends, however it ends."""
    lines = [f"{answer.outcome.value}: {line}" for line in answer.lines] or [answer.outcome.value]
    say(f"{now:%Y-%m-%dT%H:%M:%SZ} {line}" for line in lines)
    sys.stdout.flush()
    if termination_log.exists():
        text = redactor().text("\n".join(lines)).encode()[:LONGEST_MESSAGE]
        with suppress(OSError):  # the wait goes on even if its message cannot be written
            termination_log.write_bytes(text.decode(errors="ignore").encode())


def _exit_code(answer: GateAnswer) -> ExitCode:
    from reconcile.probes.verdict import ProbeResult

    codes = {ProbeResult.PASSED: ExitCode.YES, ProbeResult.UNKNOWN: ExitCode.CLUSTER}
    return codes.get(answer.outcome, ExitCode.NO)


def _wait_of(phase: str, file: Path, kubeconfig: str) -> GateWait:
    """Raises `Problems` for a document that is not there or not about this phase."""
    from reconcile.gate.gate_wait import GateWait
    from reconcile.gate.resolved_gates import read_gate
    from reconcile.gate.start_checks import check_verdicts, with_files
    from reconcile.observe.kept_fields import for_checks
    from reconcile.observe.readings import Readings
    from reconcile.observe.source import DirectSource
    from reconcile.schemas import packaged_schemas
    from renderer.assemble import open_template_set
    from renderer.files.templates import read_templates

    document = read_gate(_text(file), str(file))
    if document.name != phase:
        raise problem("AnotherGate", f"{file} is the gate {document.name}, not {phase}", remedy="give its own file")
    connection = connect_to(Target(kubeconfig=kubeconfig, context="", templates=()))
    schemas, checks = packaged_schemas(), document.checks
    template_set = open_template_set(with_files(read_templates(), checks)) if checks else None
    kinds = template_set.catalog.kinds if template_set else document.kinds
    source = DirectSource(connection.cluster, kinds)
    readings = Readings(connection.cluster, kinds, wall_clock, dial_of(connection))
    if checks is None or template_set is None:
        return GateWait(document, source, readings, schemas)
    for_them = DirectSource(connection.cluster, kinds, for_checks)
    before = check_verdicts(checks, template_set, for_them, readings, schemas)
    return GateWait(document, source, readings, schemas, before)


def _text(file: Path) -> str:
    require_file(file, remedy=_FROM_REMEDY)
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else "it is not UTF-8"
        raise problem("Unreadable", reason, file=str(file), remedy=_FROM_REMEDY) from error


def _duration(text: str | None) -> timedelta | None:
    """Raises `Problems` for what is no duration."""
    if text is None:
        return None
    found = re.fullmatch(r"([0-9]+)([smh])", text)
    if found is None:
        raise problem(
            "InvalidDuration", f"--timeout: {text!r} is not a duration", remedy="write it like 90s, 30m or 2h"
        )
    return timedelta(seconds=int(found[1]) * _SECONDS[found[2]])
