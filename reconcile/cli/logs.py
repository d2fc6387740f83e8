"""`logs`: what the pods of a plan print, or have printed."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconcile.cli.candidates import node_names, plan_names
from reconcile.cli.connect import Target, cluster_options, template_set_of, wall_clock
from reconcile.cli.log_collection import collected_logs
from renderer.cli.answer import plain, say
from renderer.cli.candidates import phase_names
from renderer.cli.input_options import FOLDER
from renderer.errors import ExitCode, problem
from renderer.suggest import did_you_mean

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.pod_logs.plan_pods import PlanPod
    from renderer.catalog.load import Catalog

_EVERY = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The pods that are asked for, and since when; None for all."""

    component: str | None = None
    node: str | None = None
    start: datetime | None = None

    def takes(self, component: str, node: str) -> bool:
        """The component of a node Plan's pods ends with the phase's."""
        return (self.component is None or component.endswith(self.component)) and self.node in (None, node)


@click.command
@click.argument("name", required=False, metavar="[PLAN]", shell_complete=plan_names)
@click.option("--phase", metavar="NAME", shell_complete=phase_names, help="Only the pods of this phase.")
@click.option("--node", metavar="NAME", shell_complete=node_names, help="Only the pods on this node.")
@click.option("--follow", "-f", is_flag=True, help="Print new lines until the plan has ended.")
@click.option("--since", metavar="DURATION", help="Only lines newer than this, such as 10m.")
@click.option(
    "--from", "folder", type=FOLDER, metavar="FOLDER", help="Print what `run --logs` has collected in FOLDER."
)
@cluster_options
def logs(
    name: str | None,
    phase: str | None,
    node: str | None,
    follow: bool,
    since: str | None,
    folder: str | None,
    target: Target,
) -> ExitCode:
    """Print the logs of a plan's pods.

    \b
    Examples:
      upgradeplan logs --phase NodeUpgrade --node charlie-2-tink-system
      upgradeplan logs hvst-upgrade-864fh --follow --since 10m
      kubectl -n harvester-system exec deploy/harvester-upgrade-manager-controller-manager -- \\
        upgradeplan logs --from /var/log/upgradeplan

    Each line begins with pod and container. Pods of later steps are followed as they start. Secrets are hidden.
    """
    from reconcile.cli.parts import parts_of, plan_named

    start = _start_of(since)
    if folder is not None:
        catalog = template_set_of(target.templates).catalog
        return _collected(Path(folder), name, Asked(component=_component(catalog, phase), node=node, start=start))
    parts = parts_of(target)
    asked = Asked(component=_component(parts.rendering.catalog, phase), node=node, start=start)
    plan = plan_named(parts, name)
    follower = LogFollower(parts, asked)
    while follower.look(plan) and follow:
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
    """Prints what is kept; what was lost goes to stderr. Raises `Problems` for a folder without logs."""
    from reconcile.status.times import time_text

    kept = collected_logs(folder)
    first = time_text(asked.start)[:19] if asked.start else ""
    for entry in sorted(kept.entries.values(), key=lambda entry: (entry.plan, entry.name)):
        if plan not in (None, entry.plan) or not asked.takes(entry.component, entry.node):
            continue
        where = f"[{entry.namespace}/{entry.pod}/{entry.container}]"
        say(f"{where} {plain(line)}" for line in kept.lines(entry) if line[:19] >= first)
        say((f"{where} lost: {text}" for text in entry.lost), sys.stderr)
    return ExitCode.YES


class LogFollower:
    """Prints what is new since it looked last."""

    def __init__(self, parts: ReconcilerDeps, asked: Asked) -> None:
        self._parts = parts
        self._asked = asked
        self._last: dict[tuple[str, str], str] = {}
        self._noted: set[str] = set()

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
                self._print(pod)
        sys.stdout.flush()
        return not is_over(status_of(body))

    def _print(self, pod: PlanPod) -> None:
        from reconcile.observe.container_log import LogUnavailableError, read_after

        for container in pod.containers:
            key = (str(pod.ref), container)
            last = self._last.get(key, "")
            try:
                lines = read_after(self._parts.cluster, pod.ref, container, last, start=self._asked.start)
            except LogUnavailableError as error:
                self._note(f"{key[0]}, container {container}: {error}")
                continue
            say(f"[{pod.ref.namespace}/{pod.ref.name}/{container}] {plain(line.text)}" for line in lines)
            self._last[key] = next((line.time for line in reversed(lines) if line.time), last)

    def _note(self, why: str) -> None:
        """Says once what cannot be read."""
        if why not in self._noted:
            self._noted.add(why)
            say([why], sys.stderr)
