"""`gate`: waits for the gates of one phase, in a Job that an agent delivers with the phase."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconcile.cli.connect import Target, connect_to, dial_of, wall_clock
from renderer.cli.answer import Model, answer, output_option, redactor, say
from renderer.cli.candidates import phase_names
from renderer.errors import ExitCode, problem
from renderer.files.filesystem import require_file
from renderer.model.document_type import GATE_REPORT

if TYPE_CHECKING:
    from reconcile.gate.gate_wait import GateAnswer, GateWait
    from reconcile.gate.resolved_gates import GateDocument

_PAUSE = 5.0
_FROM_REMEDY = "mount the rendered ConfigMap, or give --from"
LONGEST_MESSAGE = 4096
"""Bytes that Kubernetes keeps of a termination message."""


@click.command
@click.argument("phase", shell_complete=phase_names)
@click.option(
    "--from",
    "file",
    type=click.Path(path_type=Path),
    default="/etc/upgradeplan/gate.yaml",
    show_default=True,
    metavar="FILE",
    help="The document that was rendered beside the Job.",
)
@click.option("--timeout", metavar="DURATION", help="Give up after this time, such as 30m. 0s looks once.")
@click.option("--kubeconfig", default="", metavar="FILE", help="The kubeconfig file to use. Not needed in a pod.")
@click.option(
    "--termination-log",
    type=click.Path(path_type=Path),
    default="/dev/termination-log",
    show_default=True,
    metavar="FILE",
    help="Where to leave the reason of the wait or the failure, for people who look at the pod.",
)
@output_option
def gate(phase: str, file: Path, timeout: str | None, kubeconfig: str, termination_log: Path, output: str) -> ExitCode:
    """Wait until the gates of a phase have passed.

    \b
    Examples:
      upgradeplan gate ImagePreload --from gate.yaml
      upgradeplan gate ImagePreload --from gate.yaml --timeout 30m

    Runs in a Job that an agent delivers with the phase; what it waits for was rendered beside the Job. Logs each
    change, or with -o json prints the last answer. Without --timeout it never gives up. While the API server is
    unavailable it waits, and that time does not count. Exits 0 if all gates have passed, 1 if one has failed or the
    time is over, 3 if the time is over and it could not look.
    """
    limit = _duration(timeout)
    document = _document(phase, file)
    wait = _wait_of(document, kubeconfig)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.NO))  # the first process of a container has no default
    found = _follow(wait, limit, termination_log, quiet=output == "json")
    if output == "json":
        answer(GATE_REPORT, _model(document, found), output, lambda _: ())
    return _exit_code(found)


def _model(document: GateDocument, found: GateAnswer) -> Model:
    return {
        "plan": document.plan,
        "name": document.name,
        "digest": document.digest,
        "outcome": found.outcome.value,
        "reasons": list(found.lines),
    }


def _follow(wait: GateWait, limit: timedelta | None, termination_log: Path, *, quiet: bool) -> GateAnswer:
    """Looks until the gates have passed or failed, or the time is over; says what is new."""
    from reconcile.probes.verdict import ProbeResult

    said: GateAnswer | None = None
    while True:
        now = wall_clock()
        found = wait.look(now)
        if found != said:
            report(now, found, termination_log, quiet=quiet)
        said = found
        if found.outcome in (ProbeResult.PASSED, ProbeResult.FAILED) or (limit is not None and wait.looked >= limit):
            return found
        time.sleep(_PAUSE)


def report(now: datetime, found: GateAnswer, termination_log: Path, *, quiet: bool = False) -> None:
    """Logs the answer unless it is quiet, and leaves it where Kubernetes looks when the pod ends, however it ends."""
    lines = [f"{found.outcome.value}: {line}" for line in found.lines] or [found.outcome.value]
    if not quiet:
        say(f"{now:%Y-%m-%dT%H:%M:%SZ} {line}" for line in lines)
        sys.stdout.flush()
    if termination_log.exists():
        text = redactor().text("\n".join(lines)).encode()[:LONGEST_MESSAGE]
        with suppress(OSError):  # the wait goes on even if its message cannot be written
            termination_log.write_bytes(text.decode(errors="ignore").encode())


def _exit_code(found: GateAnswer) -> ExitCode:
    from reconcile.probes.verdict import ProbeResult

    codes = {ProbeResult.PASSED: ExitCode.YES, ProbeResult.UNKNOWN: ExitCode.CLUSTER}
    return codes.get(found.outcome, ExitCode.NO)


def _document(phase: str, file: Path) -> GateDocument:
    """Raises `Problems` for a document that is not there or not about this phase."""
    from reconcile.gate.resolved_gates import read_gate

    document = read_gate(_text(file), str(file))
    if document.name != phase:
        raise problem("AnotherGate", f"{file} is the gate {document.name}, not {phase}", remedy="give its own file")
    return document


def _wait_of(document: GateDocument, kubeconfig: str) -> GateWait:
    from reconcile.gate.gate_wait import GateWait
    from reconcile.gate.start_checks import check_verdicts, with_files
    from reconcile.observe.kept_fields import for_checks
    from reconcile.observe.readings import Readings
    from reconcile.observe.source import DirectSource
    from reconcile.schemas import packaged_schemas
    from renderer.assemble import open_template_set
    from renderer.files.templates import read_templates

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
    """Raises `Problems` if it is not a duration."""
    from reconcile.status.times import duration_of

    if text is None:
        return None
    found = duration_of(text)
    if found is None:
        message = f"--timeout: {text!r} is not a duration"
        raise problem("InvalidDuration", message, remedy="write it like 90s, 30m or 1h30m, a year at most")
    return found
