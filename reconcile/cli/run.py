"""`run`: the in-cluster loop, or the same from outside with a kubeconfig."""

from __future__ import annotations

import gc
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING
from uuid import uuid4

import click

from reconcile.cli.connect import (
    Connection,
    Target,
    cluster_options,
    connect_to,
    dial_of,
    template_set_of,
    wall_clock,
)
from reconcile.cli.endpoints import MetricsOptions, serve_health, serve_metrics, serve_webhook
from reconcile.cli.journal import journal_at
from reconcile.cli.log_collection import ALL, PLANS, beside, collector_of, scale_of
from renderer.cli.input_options import FILE, FOLDER
from renderer.cli.version import installed_version
from renderer.errors import ExitCode, Problem

if TYPE_CHECKING:
    from reconcile.cluster.meter import CallMeter
    from reconcile.loop.logs import Log
    from reconcile.loop.manager import Manager
    from reconcile.loop.round import Round
    from reconcile.loop.setup import ManagerConfig
    from reconcile.metrics.manager_metrics import ManagerMetrics

GARBAGE = 2_000
"""Objects that may gather before Python looks for garbage. A command that ends soon lets more gather; of a process that
runs for months it would be a part of its memory for as long."""


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
    "--metrics-address",
    default="",
    metavar="HOST:PORT",
    help="Where /metrics is served for Prometheus; '' disables it.",
)
@click.option(
    "--metrics-secure/--no-metrics-secure",
    default=True,
    show_default=True,
    help="Serve /metrics over HTTPS, only to clients that the API server authenticates and authorizes to get it.",
)
@click.option(
    "--metrics-certificate",
    type=FOLDER,
    metavar="FOLDER",
    help="Folder with tls.crt and tls.key for /metrics, reloaded when they change. Defaults to a generated one.",
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
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="The lowest level that is logged.",
)
@click.option("--journal", type=FILE, metavar="FILE", help="Record every decision in FILE, for `explain --replay`.")
@click.option(
    "--logs",
    "logs_folder",
    type=FOLDER,
    metavar="FOLDER",
    help="Collect the logs of the plans' pods in FOLDER, for `logs --from`.",
)
@click.option(
    "--logs-limit",
    default="256Mi",
    show_default=True,
    metavar="SIZE",
    help="Size of the volume of FOLDER. At most half of it is used, and the oldest logs go first.",
)
@click.option(
    "--logs-collector",
    default="",
    metavar="NAME",
    help="Scale this Deployment, which runs `collect-logs`, to 1 while a plan is under way, and then to 0.",
)
@click.option(
    "--logs-plans",
    type=PLANS,
    default=ALL,
    show_default=True,
    help="The plans whose logs are collected, as for `collect-logs --plans`.",
)
def run(
    target: Target,
    namespace: str,
    health_address: str,
    webhook_address: str,
    webhook_name: str,
    metrics_address: str,
    metrics_secure: bool,
    metrics_certificate: str | None,
    leader_elect: bool,
    log_format: str,
    log_level: str,
    journal: str | None,
    logs_folder: str | None,
    logs_limit: str,
    logs_collector: str,
    logs_plans: str,
) -> ExitCode:
    """Run the manager, as the in-cluster Deployment does.

    Watches UpgradePlans and runs the oldest one that has not ended. Stops on SIGTERM or Ctrl-C after the current
    write; the next manager continues from the plan's status.

    The environment variables UPGRADE_JOB_SERVICE_ACCOUNT and UPGRADE_PLAN_SERVICE_ACCOUNT override the templates'
    values jobServiceAccount and planServiceAccount; UPGRADEPLAN_IMAGE_REGISTRY, UPGRADEPLAN_IMAGE_PULL_SECRETS and
    UPGRADEPLAN_TOOLKIT_TAG override imageRegistry, imagePullSecrets and toolkitTag. What they change is part of the
    digests that are approved. UPGRADEPLAN_IMAGE, the value managerImage, is not.
    ENABLE_WEBHOOKS=false serves no webhook.
    """
    if logs_plans != ALL and logs_folder is None and not logs_collector:
        raise click.UsageError("--logs-plans says whose logs are collected, and needs --logs or --logs-collector")
    gc.set_threshold(GARBAGE)
    metrics = _metrics() if metrics_address else None
    connection = connect_to(target, _meter(metrics) if metrics else None)
    config = _config(target, connection, namespace if leader_elect else "", (log_format, log_level), journal)
    collector = None if logs_folder is None else collector_of(config, logs_folder, logs_limit, logs_plans)
    scale = scale_of(config, namespace, logs_collector, logs_plans) if logs_collector else None
    observers = [observer.on_round for observer in (metrics, collector, scale) if observer is not None]
    manager = _manager(_observed(config, observers, metrics))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: manager.stop())
    with ExitStack() as served:
        webhook = None
        if webhook_address:
            webhook = serve_webhook(webhook_address, webhook_name, namespace, config, manager, metrics)
            served.callback(webhook.stop)
        if health_address:
            health = serve_health(health_address, lambda: manager.ready and (webhook is None or webhook.ready))
            served.callback(health.stop)
        if collector is not None:
            served.callback(beside(collector.run, collector.stop))
        if scale is not None:
            served.callback(beside(partial(scale.run, manager.must_lead), scale.stop))
        if metrics is not None:
            options = MetricsOptions(address=metrics_address, secure=metrics_secure, certificate=metrics_certificate)
            server = serve_metrics(options, metrics, connection.cluster.ask, manager, webhook)
            served.callback(server.stop)
        manager.run()
    return ExitCode.YES


def _observed(
    config: ManagerConfig, observers: Sequence[Callable[[Round], None]], metrics: ManagerMetrics | None
) -> ManagerConfig:
    """Adds a log of the rounds, and others that learn of each."""
    from reconcile.loop.round_log import RoundLog

    everyone: tuple[Callable[[Round], None], ...] = (RoundLog(config.log), *observers)

    def on_round(done: Round) -> None:
        for observe in everyone:
            observe(done)

    config = replace(config, on_round=on_round)
    return config if metrics is None else replace(config, on_result=metrics.on_result)


def _metrics() -> ManagerMetrics:
    from reconcile.metrics.manager_metrics import ManagerMetrics

    return ManagerMetrics(version=installed_version(), now=wall_clock)


def _meter(metrics: ManagerMetrics) -> CallMeter:
    from reconcile.cluster.meter import CallMeter

    return CallMeter(clock=time.monotonic, record=metrics.on_call)


def _manager(config: ManagerConfig) -> Manager:
    from reconcile.loop.setup import assemble_manager

    return assemble_manager(config)


def _config(
    target: Target, connection: Connection, lease_namespace: str, log: tuple[str, str], journal: str | None
) -> ManagerConfig:
    from reconcile.loop.logs import LogLevel, json_lines, redacted, text_lines
    from reconcile.loop.overrides import overrides_of
    from reconcile.loop.setup import ManagerConfig
    from reconcile.schemas import packaged_schemas
    from renderer.redaction import Redactor, packaged_redactor

    overrides = overrides_of(os.environ)
    log_format, level = log
    lines = (text_lines if log_format == "text" else json_lines)(sys.stderr, wall_clock, LogLevel[level.upper()])
    template_set = template_set_of(target.templates, partial(_log_warnings, redacted(lines, packaged_redactor())))
    if overrides:
        lines("values from the environment", {"values": overrides})
    return ManagerConfig(
        cluster=connection.cluster,
        template_set=template_set,
        schemas=packaged_schemas(),
        now=wall_clock,
        clock=time.monotonic,
        random=random.random,
        dial=dial_of(connection),
        read=connection.read,
        log=redacted(lines, Redactor(template_set.catalog.redaction)),
        identity=f"{socket.gethostname()}_{uuid4()}",
        lease_namespace=lease_namespace,
        journal=journal_at(journal, template_set.catalog.redaction),
        overrides=overrides,
    )


def _log_warnings(log: Log, warnings: Iterable[Problem]) -> None:
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
