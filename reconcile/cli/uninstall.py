"""`uninstall`: removes the manager from a cluster."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from reconcile.cli.connect import Target, cluster_options, connect_to
from renderer.cli.answer import say
from renderer.errors import ExitCode, Problem, Problems

if TYPE_CHECKING:
    from reconcile.cluster.protocol import Cluster
    from renderer.model.ref import Body


@click.command
@click.option(
    "--name",
    default="harvester-upgrade-manager",
    show_default=True,
    metavar="NAME",
    help="The name of the installation.",
)
@click.option("--dry-run", is_flag=True, help="Show what would be removed, and remove nothing.")
@click.option("--check", is_flag=True, help="Only check that no plan is under way; exit 1 if one is.")
@cluster_options
def uninstall(name: str, dry_run: bool, check: bool, target: Target) -> ExitCode:
    """Remove the manager from the cluster.

    \b
    Examples:
      upgradeplan uninstall --dry-run
      upgradeplan uninstall

    Refused while a plan is under way. The definition of UpgradePlan stays, and so do all plans and the volume of
    collected logs; a later `upgradeplan install` finds them. What a Helm release or an Addon has installed is
    removed by helm or by disabling the Addon.
    """
    from reconcile.install.removal import plans_of, remove, stays, under_way, volumes_of

    cluster = connect_to(target).cluster
    plans = plans_of(cluster)
    if running := list(under_way(plans)):
        raise Problems(running, ExitCode.NO)
    if check:
        say(["no plan is under way"])
        return ExitCode.YES
    objects = _ours(cluster, name)
    if dry_run:
        say(f"{body['kind']} {_name(body)} would be removed" for body in objects)
    for ref in () if dry_run else remove(cluster, objects):
        say([f"{ref} removed"])
        sys.stdout.flush()
    say(stays(plans, volumes_of(cluster, name)))
    return ExitCode.YES


def _ours(cluster: Cluster, name: str) -> tuple[Body, ...]:
    """Raises `Problems` where there is nothing to remove, or another tool has installed it."""
    from reconcile.install.removal import holders_of, to_remove

    objects = to_remove(cluster, name)
    found = [
        Problem(reason="BelongsToAnother", message=f"{name} was installed by {holder}", remedy=holder.removal())
        for holder in holders_of(cluster, objects)
    ]
    if not objects:
        listing = "kubectl get deployments -A -l app.kubernetes.io/part-of=upgradeplan"
        remedy = f"name the installation with --name; `{listing}` lists them"
        found = [Problem(reason="NotInstalled", message=f"the cluster has no installation {name!r}", remedy=remedy)]
    if found:
        raise Problems(found, ExitCode.NO)
    return objects


def _name(body: Body) -> str:
    metadata = body["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
