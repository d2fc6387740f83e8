"""`logs`: what the pods of a plan print, or have printed."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconcile.cli.candidates import node_names, plan_names
from reconcile.cli.connect import Target, cluster_options, template_set_of, wall_clock
from reconcile.cli.log_collection import collected_logs
from reconcile.cli.stored_logs import namespace_option, refuse_namespace_unless, stored_logs
from renderer.cli.answer import Model, output_option, pass_on, plain, redactor, say
from renderer.cli.candidates import phase_names
from renderer.cli.input_options import FOLDER
from renderer.errors import ExitCode, problem
from renderer.suggest import did_you_mean

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.observe.container_log import LogLine
    from reconcile.pod_logs.folder import LogEntry
    from reconcile.pod_logs.log_record import LogRecord
    from reconcile.pod_logs.plan_pods import PlanPod
    from renderer.catalog.load import Catalog

_EVERY = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The pods that are asked for, since when, and how many of the last lines; None for all. `output` is `text` or
    `json`."""

    component: str | None = None
    node: str | None = None
    start: datetime | None = None
    tail: int | None = None
    output: str = "text"

    def takes(self, component: str, node: str) -> bool:
        """The component of a node Plan's pods ends with the phase's."""
        return (self.component is None or component.endswith(self.component)) and self.node in (None, node)


@click.command
@click.argument("name", required=False, metavar="[PLAN]", shell_complete=plan_names)
@click.option("--phase", metavar="NAME", shell_complete=phase_names, help="Only the pods of this phase.")
@click.option("--node", metavar="NAME", shell_complete=node_names, help="Only the pods on this node.")
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the plan has ended.")
@click.option("--since", metavar="DURATION", help="Only lines newer than this, such as 10m.")
@click.option("--tail", type=click.IntRange(min=0), metavar="NUMBER", help="Only the last lines of each log.")
@click.option(
    "--from",
    "folder",
    type=FOLDER,
    metavar="FOLDER",
    help="Print what `run --logs` or `collect-logs` has collected in FOLDER.",
)
@click.option(
    "--stored", is_flag=True, help="Print what is on the volume of the value logs.storage, by a pod that reads it."
)
@namespace_option
@cluster_options
@output_option
def logs(
    name: str | None,
    phase: str | None,
    node: str | None,
    follow: bool,
    since: str | None,
    tail: int | None,
    folder: str | None,
    stored: bool,
    namespace: str,
    target: Target,
    output: str,
) -> ExitCode:
    """Print the logs of a plan's pods.

    \b
    Examples:
      upgradeplan logs --phase NodeUpgrade --node charlie-2-tink-system
      upgradeplan logs hvst-upgrade-864fh --follow --since 10m
      upgradeplan logs hvst-upgrade-864fh --stored --tail 100
      kubectl -n harvester-system exec deploy/harvester-upgrade-manager-controller-manager -- \\
        upgradeplan logs --from /var/log/upgradeplan

    Each line begins with pod and container. Pods of later steps are followed as they start. Secrets are hidden.

    Pods that are gone have logs only where they were collected. --stored makes a pod beside the collector, or in its
    place once the plan has ended, and removes it again; with --follow the logs of the pods that run come after it.
    """
    from reconcile.cli.parts import parts_of, plan_named
    from reconcile.pod_logs.collector_pods import other_collector

    refuse_namespace_unless(stored, "--stored")
    asked = Asked(node=node, start=_start_of(since), tail=tail, output=output)
    if folder is not None:
        if stored or follow:
            raise click.UsageError("--from is for a folder, and cannot be combined with --stored and --follow")
        catalog = template_set_of(target.templates).catalog
        return _collected(Path(folder), name, replace(asked, component=_component(catalog, phase)))
    parts = parts_of(target)
    asked = replace(asked, component=_component(parts.rendering.catalog, phase))
    plan = plan_named(parts, name) if follow or not stored else name
    follower = LogFollower(parts, asked)
    if stored:
        options = {"--phase": phase, "--node": node, "--since": since, "--tail": tail}
        words = [f"{option}={value}" for option, value in options.items() if value is not None]
        records = stored_logs(parts.cluster, parts.source, namespace, [*words, *([plan] if plan else [])]).records
        _print(records, output)
        follower.go_on_after(records)
    elif other := other_collector(parts.source, str(plan)):
        say([other], sys.stderr)
    while (follow or not stored) and follower.look(str(plan)) and follow:
        time.sleep(_EVERY)
    return ExitCode.YES


def _start_of(since: str | None) -> datetime | None:
    """Raises `Problems` if it is not a duration."""
    from reconcile.status.times import duration_of

    if since is None:
        return None
    duration = duration_of(since)
    if not duration:
        message = f"--since: {since!r} is not a duration"
        raise problem("InvalidDuration", message, remedy="write it like 10m or 2h")
    return wall_clock() - duration


def _component(catalog: Catalog, phase: str | None) -> str | None:
    """The component that the phase's objects are labelled with: its folder's name. Raises `Problems`."""
    if phase is None:
        return None
    folders = {item.phase.name: item.phase.folder.partition("-")[2] for item in catalog.phases}
    if phase not in folders:
        remedy = f"choose one of: {', '.join(folders)}"
        raise problem(
            "UnknownPhase", f"--phase: there is no phase {phase}{did_you_mean(phase, folders)}", remedy=remedy
        )
    return folders[phase]


def _collected(folder: Path, plan: str | None, asked: Asked) -> ExitCode:
    """Prints what is kept. Raises `Problems` for a folder without logs."""
    from reconcile.pod_logs.log_record import printed, records_in
    from reconcile.status.times import time_text

    def takes(entry: LogEntry) -> bool:
        return plan in (None, entry.plan) and asked.takes(entry.component, entry.node)

    first = time_text(asked.start)[:19] if asked.start else ""
    records = records_in(collected_logs(folder), takes, since=first, tail=asked.tail)
    if asked.output == "json":
        _print_models(printed(records))
    else:
        _print(records, "text")
    return ExitCode.YES


def _print(records: Iterable[LogRecord], output: str) -> None:
    """As text with the lines' times; what was lost goes to stderr."""
    if output == "json":
        _print_models(record.model() for record in records)
        return
    for record in records:
        if record.lost:
            say([f"{record.where} lost: {plain(record.lost)}"], sys.stderr)
        else:
            say([f"{record.where} {plain(f'{record.time} {record.text}'.lstrip())}"])


def _print_models(models: Iterable[Model]) -> None:
    """One on each line: schemas/log-record.json."""
    pass_on(json.dumps(redactor().value(model), ensure_ascii=False) for model in models)


class LogFollower:
    """Prints what is new since it looked last."""

    def __init__(self, parts: ReconcilerDeps, asked: Asked) -> None:
        self._parts = parts
        self._asked = asked
        self._last: dict[tuple[str, str, str], str] = {}
        self._noted: set[str] = set()

    def go_on_after(self, records: Iterable[LogRecord]) -> None:
        """These lines were printed already."""
        self._last |= {
            (record.namespace, record.pod, record.container): record.time for record in records if record.time
        }

    def look(self, plan: str) -> bool:
        """True while the plan has not ended. Raises `Problems` where pods cannot be listed."""
        from reconcile.cli.parts import plan_there
        from reconcile.decide.plan import is_over
        from reconcile.pod_logs.plan_pods import pods_of_plan
        from reconcile.status.plan_body import status_of

        body = plan_there(self._parts, plan)
        if body is None:
            return False
        found = pods_of_plan(self._parts.source, body)
        for failure in found.unread.values():
            if not found.pods:
                message = f"pods cannot be listed: {failure.why}"
                raise problem("Forbidden", message, remedy=failure.remedy, exit_code=ExitCode.CLUSTER)
            self._note(failure.why)
        for pod in found.pods:
            if self._asked.takes(pod.component, pod.node):
                self._print(plan, pod)
        sys.stdout.flush()
        return not is_over(status_of(body))

    def _print(self, plan: str, pod: PlanPod) -> None:
        from reconcile.observe.container_log import LogUnavailableError, read_after

        for container in pod.containers:
            key = (pod.ref.namespace, pod.ref.name, container)
            last = self._last.get(key, "")
            try:
                lines = read_after(self._parts.cluster, pod.ref, container, last, start=self._asked.start)
            except LogUnavailableError as error:
                self._note(f"{pod.ref}, container {container}: {error}")
                continue
            if self._asked.tail is not None and not last:
                lines = lines[max(0, len(lines) - self._asked.tail) :]
            self._print_lines(plan, pod, container, lines)
            self._last[key] = next((line.time for line in reversed(lines) if line.time), last)

    def _print_lines(self, plan: str, pod: PlanPod, container: str, lines: Iterable[LogLine]) -> None:
        from reconcile.pod_logs.log_record import LogRecord

        of_log = LogRecord(
            plan=plan,
            namespace=pod.ref.namespace,
            pod=pod.ref.name,
            container=container,
            component=pod.component,
            node=pod.node,
        )
        if self._asked.output == "json":
            _print_models(replace(of_log, time=line.time, text=line.text).model() for line in lines)
        else:
            say(f"{of_log.where} {plain(line.text)}" for line in lines)

    def _note(self, why: str) -> None:
        """Says once what cannot be read."""
        if why not in self._noted:
            self._noted.add(why)
            say([why], sys.stderr)
