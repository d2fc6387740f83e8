"""`vm-live-migrate-detector`, `restore-vm`, `version-guard`: what an upgrade's Jobs call, with the command lines, exit
codes and messages of Harvester's upgrade toolkit. An error exits 1, whatever it is; a wrong option 2."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from reconcile.cli.connect import Target, connect_to, wall_clock
from renderer.cli.answer import say, warn
from renderer.errors import ExitCode, Problem, Problems, problem
from renderer.model.plan_api import plan_ref

if TYPE_CHECKING:
    from reconcile.cluster.protocol import Cluster
    from reconcile.toolkit.helper_output import HelperOutput, Log

_COMMON = (
    click.option(
        "--kubeconfig",
        type=click.Path(),
        metavar="FILE",
        default="",
        help="The kubeconfig file to use. Defaults to $KUBECONFIG, and in a pod to its service account.",
    ),
    click.option(
        "--log-format", type=click.Choice(["console", "json"]), default="console", help="Format of the log on stdout."
    ),
    click.option("--log-level", type=int, default=0, hidden=True, help="Accepted as by the toolkit."),
    click.option("--debug", is_flag=True, hidden=True, help="Accepted as by the toolkit."),
)

Command = Callable[..., int]


def _common_options(command: Command) -> Command:
    """Adds what all of them take; the command gets a cluster and a log. Every error is exit code 1, as in the toolkit:
    a Job fails by it and is tried again."""

    # log_level and debug are accepted because the toolkit's commands have them.
    @wraps(command)
    def with_cluster(kubeconfig: str, log_format: str, log_level: int, debug: bool, **others: Any) -> int:  # noqa: ARG001
        try:
            return command(cluster=_connected(kubeconfig), log=_log_of(log_format), **others)
        except Problems as error:
            raise Problems(error.problems, ExitCode.NO, warnings=error.warnings) from error

    for option in reversed(_COMMON):
        with_cluster = option(with_cluster)
    return with_cluster


def _connected(kubeconfig: str) -> Callable[[], Cluster]:
    return lambda: connect_to(Target(kubeconfig=kubeconfig, context="", templates=())).cluster


def _log_of(form: str) -> Log:
    if form == "console":
        return lambda text: say([text])
    return lambda text: say([json.dumps({"level": "info", "ts": wall_clock().isoformat(), "msg": text})])


class GoFlagsCommand(click.Command):
    """A command whose options are read as Go reads them: with one dash or two, `--shutdown` and `--shutdown=false`, and
    the next word is never a flag's value."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        names = {name for param in self.params for name in param.opts}
        flags = {name for param in self.params if getattr(param, "flag_value", None) == "true" for name in param.opts}
        words = [f"-{word}" if f"-{word}".partition("=")[0] in names else word for word in args]
        return super().parse_args(ctx, [f"{word}=true" if word in flags else word for word in words])


@click.command(cls=GoFlagsCommand)
@click.argument("node", required=False, metavar="NODENAME")
@click.option(
    "--shutdown",
    is_flag=False,
    flag_value="true",
    default="false",
    metavar="[true|false]",
    help="Stop the virtual machines that cannot be migrated.",
)
@click.option("--upgrade", default="", metavar="NAME", help="The UpgradePlan, for the list and events.")
@_common_options
def vm_live_migrate_detector(
    node: str | None, shutdown: str, upgrade: str, cluster: Callable[[], Cluster], log: Log
) -> ExitCode:
    """List the virtual machines of a node that cannot be migrated.

    \b
    Examples:
      upgradeplan vm-live-migrate-detector charlie-2-tink-system
      upgradeplan vm-live-migrate-detector charlie-2-tink-system --shutdown --upgrade hvst-upgrade-864fh

    With --upgrade, the machines that restore-vm will start again are added to ConfigMap
    harvester-system/NAME-restore-vm before any is stopped; if that fails, no machine is stopped. Exits 0 even if a
    machine could not be stopped; the events name it.
    """
    from reconcile.toolkit.detector import COMPONENT, detect

    if not node:
        raise _usage("vm-live-migrate-detector NODENAME [--shutdown] [--upgrade NAME]")
    stops = _flag("--shutdown", shutdown)
    detect(_output_of(cluster(), COMPONENT, node, upgrade, log), shutdown=stops)
    return ExitCode.YES


@click.command(cls=GoFlagsCommand)
@click.option("--node", default="", metavar="NODENAME", help="The node whose virtual machines to start.")
@click.option("--upgrade", default="", metavar="NAME", help="The UpgradePlan.")
@_common_options
def restore_vm(node: str, upgrade: str, cluster: Callable[[], Cluster], log: Log) -> ExitCode:
    """Restart the virtual machines that were stopped for a node.

    \b
    Examples:
      upgradeplan restore-vm --node charlie-2-tink-system --upgrade hvst-upgrade-864fh

    Waits up to 30 minutes for KubeVirt. Machines that were started are removed from the list. Exits 0 even if a
    machine could not be started; the events name it.
    """
    from reconcile.toolkit.restore import COMPONENT, restore

    for value, option in ((node, "--node"), (upgrade, "--upgrade")):
        if not value:
            raise problem("Usage", f"{option} is required", exit_code=ExitCode.NO)
    restore(_output_of(cluster(), COMPONENT, node, upgrade, log), _pause)
    return ExitCode.YES


@click.command(cls=GoFlagsCommand)
@click.argument("plan", required=False, metavar="UPGRADEPLANNAME")
@click.option(
    "--strict",
    is_flag=False,
    flag_value="true",
    default="true",
    metavar="true|false",
    show_default=True,
    help="Refuse to upgrade from a development build to a release.",
)
@click.option(
    "--min-upgradable-version",
    "minimum",
    default="",
    metavar="VERSION",
    help="Use this minimum, not the release's.",
)
@_common_options
def version_guard(plan: str | None, strict: str, minimum: str, cluster: Callable[[], Cluster], log: Log) -> ExitCode:
    """Check whether the versions in a plan's status allow the upgrade.

    \b
    Examples:
      upgradeplan version-guard hvst-upgrade-864fh
      upgradeplan version-guard hvst-upgrade-864fh --strict=false --min-upgradable-version v1.7.0

    Exits 0 if they do, 1 if they do not.
    """
    from reconcile.toolkit.helper_output import get_plan
    from reconcile.toolkit.version_guard import guard

    if not plan:
        raise _usage("version-guard UPGRADEPLANNAME [--strict] [--min-upgradable-version VERSION]")
    is_strict = _flag("--strict", strict)
    verdict = guard(get_plan(cluster(), plan), strict=is_strict, minimum=minimum)
    if not verdict.passed:
        remedy = "choose a release that this version may be upgraded to"
        raise problem("VersionNotEligible", verdict.reason, remedy=remedy, exit_code=ExitCode.NO)
    warn([Problem(reason="NoMinimum", message=text) for text in verdict.warnings])
    log(f"upgrade eligibility check: {plan_ref(plan)}: {verdict.reason}")
    return ExitCode.YES


def _usage(text: str) -> Problems:
    return problem("Usage", f"usage: upgradeplan {text}", exit_code=ExitCode.NO)


def _output_of(cluster: Cluster, component: str, node: str, plan: str, log: Log) -> HelperOutput:
    from reconcile.toolkit.helper_output import HelperOutput

    return HelperOutput(cluster=cluster, component=component, node=node, plan=plan, now=wall_clock, log=log)


def _pause(length: timedelta) -> None:
    time.sleep(length.total_seconds())


def _flag(option: str, value: str) -> bool:
    """A flag that may be given with a value, as the toolkit's may: `--strict` and `--strict=false`."""
    from reconcile.probes.rules.call import parse_bool

    found = parse_bool(value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not true or false", param_hint=option)
    return found
