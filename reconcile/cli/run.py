"""`run`: the in-cluster loop, or the same from outside with a kubeconfig."""

from __future__ import annotations

import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import click

from reconcile.cli.connect import Target, cluster_options, connect_to, dial_of, template_set_of, wall_clock
from reconcile.cli.journal import journal_at
from renderer.cli.input_options import FILE
from renderer.errors import ExitCode, Problem, problem

if TYPE_CHECKING:
    from reconcile.admission.webhook import Webhook
    from reconcile.loop.health import HealthServer
    from reconcile.loop.logs import Tell
    from reconcile.loop.manager import Manager
    from reconcile.loop.setup import ManagerConfig


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
    help="Where /healthz and /readyz are served; '' disables them.",
)
@click.option(
    "--webhook-address",
    default=lambda: _webhook_address(),
    metavar="HOST:PORT",
    help="Where the validating webhook is served; '' disables it. Defaults to :9443 in a pod, otherwise disabled.",
)
@click.option(
    "--webhook-name",
    default="harvester-upgrade-manager",
    show_default=True,
    metavar="NAME",
    help="First part of the names of the webhook's Service, Secret and configuration.",
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
    target: Target,
    namespace: str,
    health_address: str,
    webhook_address: str,
    webhook_name: str,
    leader_elect: bool,
    log_format: str,
    journal: str | None,
) -> ExitCode:
    """Run the manager, as the in-cluster Deployment does.

    Watches UpgradePlans and runs the oldest one that has not ended. Stops on SIGTERM or Ctrl-C after the current
    write; the next manager continues from the plan's status.

    The environment variables UPGRADE_JOB_SERVICE_ACCOUNT and UPGRADE_PLAN_SERVICE_ACCOUNT override the templates'
    values jobServiceAccount and planServiceAccount. What they change is part of the digests that are approved.
    ENABLE_WEBHOOKS=false serves no webhook.
    """
    config = _config(target, namespace if leader_elect else "", log_format, journal)
    manager = _manager(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: manager.stop())
    with ExitStack() as served:
        webhook = None
        if webhook_address:
            webhook = _webhook(webhook_address, webhook_name, namespace, config, manager)
            served.callback(webhook.stop)
        if health_address:
            health = _health(health_address, lambda: manager.ready and (webhook is None or webhook.ready))
            served.callback(health.stop)
        manager.run()
    return ExitCode.YES


def _health(address: str, ready: Callable[[], bool]) -> HealthServer:
    from reconcile.loop.health import HealthServer

    with _listening("--health-address", address):
        health = HealthServer(address, ready)
    health.start()
    return health


def _webhook(address: str, name: str, namespace: str, config: ManagerConfig, manager: Manager) -> Webhook:
    from reconcile.admission.stored import WebhookObjects
    from reconcile.admission.webhook import Webhook, WebhookConfig

    with _listening("--webhook-address", address):
        webhook = Webhook(
            WebhookConfig(
                address=address,
                objects=WebhookObjects(namespace=namespace, name=name),
                cluster=config.cluster,
                template_set=config.template_set,
                schemas=config.schemas,
                leads=manager.leads,
                must_lead=manager.must_lead,
                dial=config.dial,
                tell=config.tell,
                now=config.now,
                clock=config.clock,
                random=config.random,
            )
        )
        webhook.start()
    return webhook


@contextmanager
def _listening(option: str, address: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, OverflowError) as error:
        message = f"{option} {address}: {getattr(error, 'strerror', None) or error}"
        remedy = "give HOST:PORT or :PORT with a port that is free, or '' for none"
        raise problem("InvalidAddress", message, remedy=remedy) from error


def _manager(config: ManagerConfig) -> Manager:
    from reconcile.loop.setup import assemble_manager

    return assemble_manager(config)


def _config(target: Target, lease_namespace: str, log_format: str, journal: str | None) -> ManagerConfig:
    from reconcile.loop.logs import json_lines, redacted, text_lines
    from reconcile.loop.overrides import overrides_of
    from reconcile.loop.setup import ManagerConfig
    from reconcile.schemas import packaged_schemas
    from renderer.redaction import Redactor, packaged_redactor

    overrides = overrides_of(os.environ)
    connection = connect_to(target)
    lines = (text_lines if log_format == "text" else json_lines)(sys.stderr, wall_clock)
    template_set = template_set_of(target.templates, partial(_log_warnings, redacted(lines, packaged_redactor())))
    if overrides:
        lines("values from the environment", overrides)
    return ManagerConfig(
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


def _log_warnings(log: Tell, warnings: Iterable[Problem]) -> None:
    for warning in warnings:
        log("warning", {"problem": str(warning)})


def _webhook_address() -> str:
    from reconcile.cluster.kubeconfig import SERVICE_ACCOUNT

    wanted = os.environ.get("ENABLE_WEBHOOKS", "true").lower() != "false"
    return ":9443" if wanted and SERVICE_ACCOUNT.exists() else ""


def _own_namespace() -> str:
    from reconcile.cluster.kubeconfig import SERVICE_ACCOUNT

    try:
        return (SERVICE_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    except OSError:
        return os.environ.get("POD_NAMESPACE") or "harvester-system"
