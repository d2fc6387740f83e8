"""`logs`: what the pods of a plan print, or have printed."""

from __future__ import annotations

import sys
import time
from datetime import datetime
from typing import TYPE_CHECKING

import click

from reconcile.cli.candidates import node_names, plan_names
from reconcile.cli.connect import Target, cluster_options, wall_clock
from renderer.cli.answer import plain, say
from renderer.errors import ExitCode, problem
from renderer.suggest import did_you_mean

if TYPE_CHECKING:
    from reconcile.loop.deps import ReconcilerDeps
    from reconcile.pod_logs.plan_pods import PlanPod

_EVERY = 2.0


@click.command
@click.argument("name", required=False, metavar="[PLAN]", shell_complete=plan_names)
@click.option("--phase", metavar="NAME", help="Only the pods of this phase.")
@click.option("--node", metavar="NAME", shell_complete=node_names, help="Only the pods on this node.")
@click.option("--follow", "-f", is_flag=True, help="Print what comes until the plan has ended.")
@click.option("--since", metavar="DURATION", help="Only lines that are not older, such as 10m.")
@cluster_options
def logs(
    name: str | None, phase: str | None, node: str | None, follow: bool, since: str | None, target: Target
) -> ExitCode:
    """Print the logs of a plan's pods.

    \b
    Examples:
      upgradeplan logs --phase NodeUpgrade --node charlie-2-tink-system
      upgradeplan logs hvst-upgrade-864fh --follow --since 10m

    Each line begins with pod and container. Pods of later steps are followed as they come. Secrets are hidden.
    """
    from reconcile.cli.parts import parts_of, plan_named

    start = _start_of(since)
    parts = parts_of(target)
    component = None if phase is None else _component(parts, phase)
    plan = plan_named(parts, name)
    follower = LogFollower(parts, component, node, start)
    while follower.look(plan) and follow:
        time.sleep(_EVERY)
    return ExitCode.YES


def _start_of(since: str | None) -> datetime | None:
    """Raises `Problems` for what is no duration."""
    from reconcile.status.times import duration_of

    if since is None:
        return None
    duration = duration_of(since)
    if duration is None:
        message = f"--since: {since!r} is not a duration"
        raise problem("InvalidDuration", message, remedy="write it like 10m or 2h")
    return wall_clock() - duration


def _component(parts: ReconcilerDeps, phase: str) -> str:
    """The component that the phase's objects are labelled with: its folder's name. Raises `Problems`."""
    folders = {item.phase.name: item.phase.folder.partition("-")[2] for item in parts.rendering.catalog.phases}
    if phase not in folders:
        remedy = f"choose one of: {', '.join(folders)}"
        raise problem(
            "UnknownPhase", f"--phase: there is no phase {phase}{did_you_mean(phase, folders)}", remedy=remedy
        )
    return folders[phase]


class LogFollower:
    """Prints what is new since it looked last."""

    def __init__(self, parts: ReconcilerDeps, component: str | None, node: str | None, start: datetime | None) -> None:
        self._parts = parts
        self._component = component
        self._node = node
        self._start = start
        self._last: dict[tuple[str, str], str] = {}

    def look(self, plan: str) -> bool:
        """True while the plan has not ended. Raises `Problems` where pods cannot be listed."""
        from reconcile.cli.parts import plan_there
        from reconcile.decide.plan import is_over
        from reconcile.pod_logs.plan_pods import pods_of_plan
        from reconcile.probes.look import ReadFailure
        from reconcile.status.plan_body import status_of

        body = plan_there(self._parts, plan)
        if body is None:
            return False
        pods = pods_of_plan(self._parts.source, body)
        if isinstance(pods, ReadFailure):
            raise problem(
                "Forbidden", f"pods cannot be listed: {pods.why}", remedy=pods.remedy, exit_code=ExitCode.CLUSTER
            )
        for pod in filter(self._is_asked_for, pods):
            self._print(pod)
        sys.stdout.flush()
        return not is_over(status_of(body))

    def _is_asked_for(self, pod: PlanPod) -> bool:
        of_phase = self._component is None or pod.component.endswith(self._component)  # a node Plan's ends with it
        return of_phase and self._node in (None, pod.node)

    def _print(self, pod: PlanPod) -> None:
        from reconcile.pod_logs.reading import LogUnavailableError, after, moment_of_line, read_log

        for container in pod.containers:
            key = (str(pod.ref), container)
            last = self._last.get(key, "")
            since = moment_of_line(last) if last else self._start
            try:
                lines = list(after(read_log(self._parts.cluster, pod.ref, container, since=since), last))
            except LogUnavailableError as error:
                self._note(key, str(error))
                continue
            say(f"[{pod.ref.namespace}/{pod.ref.name}/{container}] {plain(line.text)}" for line in lines)
            self._last[key] = next((line.time for line in reversed(lines) if line.time), last)

    def _note(self, key: tuple[str, str], why: str) -> None:
        """Each log that cannot be read is named once."""
        if key not in self._last:
            say([f"{key[0]}, container {key[1]}: {why}"], sys.stderr)
            self._last[key] = ""
