"""`run`: the in-cluster loop, or the same from outside with a kubeconfig."""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
import time
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import click

from reconcile.cli.connect import Target, cluster_options, connect_to, dial_of, template_set_of, wall_clock
from reconcile.cli.journal import journal_at
from renderer.cli.input_options import FILE
from renderer.errors import ExitCode, Problem, problem

if TYPE_CHECKING:
    from reconcile.loop.health import HealthServer
    from reconcile.loop.logs import Tell
    from reconcile.loop.manager import Manager


@click.command
@cluster_options
@click.option(
    "--namespace",
    default=lambda: _own_namespace(),
    metavar="NAME",
    help="The namespace of the Lease. Defaults to the pod's own.",
)
@click.option(
    "--health-address",
    default=":8081",
    show_default=True,
    metavar="HOST:PORT",
    help="Where /healthz and /readyz are served; '' for nowhere.",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Take the Lease first, so that one of several managers is active.",
)
@click.option(
    "--log-format",
    type=click.Choice(["json", "text"]),
    default=lambda: "text" if sys.stderr.isatty() else "json",
    help="Format of the log. Defaults to text on a terminal, else json.",
)
@click.option("--journal", type=FILE, metavar="FILE", help="Record every decision in FILE, for `explain --replay`.")
def run(
    target: Target, namespace: str, health_address: str, leader_elect: bool, log_format: str, journal: str | None
) -> ExitCode:
    """Run the manager, as the in-cluster Deployment does.

    Watches UpgradePlans and runs the oldest one that has not ended. Stops on SIGTERM or Ctrl-C after the current
    write; the next manager continues from the plan's status.

    The environment variables UPGRADE_JOB_SERVICE_ACCOUNT and UPGRADE_PLAN_SERVICE_ACCOUNT override the templates'
    values jobServiceAccount and planServiceAccount. What they change is part of the digests that are approved.
    """
    manager = _manager(target, namespace if leader_elect else "", log_format, journal)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: manager.stop())
    health = _health(health_address, manager) if health_address else None
    if health:
        health.start()
    try:
        manager.run()
    finally:
        if health:
            health.stop()
    return ExitCode.YES


def _health(address: str, manager: Manager) -> HealthServer:
    from reconcile.loop.health import HealthServer

    try:
        return HealthServer(address, lambda: manager.ready)
    except (OSError, ValueError, OverflowError) as error:
        message = f"--health-address {address}: {getattr(error, 'strerror', None) or error}"
        remedy = "give HOST:PORT or :PORT with a port that is free, or '' for none"
        raise problem("InvalidAddress", message, remedy=remedy) from error


def _manager(target: Target, lease_namespace: str, log_format: str, journal: str | None) -> Manager:
    from reconcile.loop.logs import json_lines, redacted, text_lines
    from reconcile.loop.overrides import overrides_of
    from reconcile.loop.setup import ManagerConfig, assemble_manager
    from reconcile.schemas import packaged_schemas
    from renderer.redaction import Redactor, packaged_redactor

    overrides = overrides_of(os.environ)
    connection = connect_to(target)
    lines = (text_lines if log_format == "text" else json_lines)(sys.stderr, wall_clock)
    template_set = template_set_of(target.templates, partial(_log_warnings, redacted(lines, packaged_redactor())))
    if overrides:
        lines("values from the environment", overrides)
    return assemble_manager(
        ManagerConfig(
            cluster=connection.cluster,
            template_set=template_set,
            schemas=packaged_schemas(),
            now=wall_clock,
            clock=time.monotonic,
            random=random.random,
            dial=dial_of(connection),
            read=connection.read,
            tell=redacted(lines, Redactor(template_set.catalog.redaction)),
            identity=f"{socket.gethostname()}_{uuid4()}",
            lease_namespace=lease_namespace,
            journal=journal_at(journal, template_set.catalog.redaction),
            overrides=overrides,
        )
    )


def _log_warnings(log: Tell, warnings: Iterable[Problem]) -> None:
    for warning in warnings:
        log("warning", {"problem": str(warning)})


def _own_namespace() -> str:
    from reconcile.cluster.kubeconfig import SERVICE_ACCOUNT

    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return os.environ.get("POD_NAMESPACE") or "harvester-system"
