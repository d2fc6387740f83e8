"""Starts what `run` serves: health, metrics and the webhook."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from reconcile.cli.connect import wall_clock
from renderer.errors import problem

if TYPE_CHECKING:
    from reconcile.admission.certificates import Pair
    from reconcile.admission.webhook import Webhook
    from reconcile.loop.endpoint_server import EndpointServer
    from reconcile.loop.manager import Manager
    from reconcile.loop.setup import ManagerConfig
    from reconcile.metrics.manager_metrics import ManagerMetrics
    from reconcile.metrics.metrics_server import ServedCertificate
    from reconcile.metrics.token_review import Ask


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsOptions:
    """The command line's words about metrics. `certificate` is a folder."""

    address: str
    secure: bool
    certificate: str | None


def serve_health(address: str, ready: Callable[[], bool]) -> EndpointServer:
    from reconcile.loop.health import health_server

    with _listening("--health-address", address):
        server = health_server(address, ready)
    server.start()
    return server


def serve_metrics(
    options: MetricsOptions, metrics: ManagerMetrics, ask: Ask, manager: Manager, webhook: Webhook | None
) -> EndpointServer:
    from reconcile.metrics.manager_metrics import LookedAt
    from reconcile.metrics.metrics_server import PATH, metrics_server
    from reconcile.metrics.token_review import Doorkeeper

    certificate = _certificate(options.certificate) if options.secure else None

    def ends() -> Mapping[str, datetime]:
        served = {"webhook": webhook, "metrics": certificate}
        found = {name: item.not_after for name, item in served.items() if item is not None}
        return {name: end for name, end in found.items() if end is not None}

    metrics.look_at(LookedAt(figures=manager.figures, certificates=ends))
    doorkeeper = Doorkeeper(ask, PATH, time.monotonic) if options.secure else None
    with _listening("--metrics-address", options.address):
        server = metrics_server(options.address, metrics.text, doorkeeper, certificate)
    server.start()
    return server


def serve_webhook(
    address: str,
    name: str,
    namespace: str,
    config: ManagerConfig,
    manager: Manager,
    metrics: ManagerMetrics | None,
) -> Webhook:
    from reconcile.admission.stored import WebhookObjects
    from reconcile.admission.webhook import Webhook, WebhookConfig
    from reconcile.admission.webhook_server import log_nothing

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
                log=config.log,
                now=config.now,
                clock=config.clock,
                random=config.random,
                on_review=metrics.on_review if metrics else log_nothing,
            )
        )
        webhook.start()
    return webhook


def _certificate(folder: str | None) -> ServedCertificate:
    """Raises `Problems` for a folder that has no certificate with its key."""
    from reconcile.metrics.metrics_server import ServedCertificate, own_pair

    if folder is None:
        pair = own_pair(("localhost",), wall_clock())
        return ServedCertificate(lambda: pair)
    try:
        return ServedCertificate(lambda: _pair_in(Path(folder)))
    except OSError as error:
        message = f"--metrics-certificate {folder}: {error}"
        remedy = "give a folder with tls.crt and tls.key, as a Secret of type kubernetes.io/tls is mounted"
        raise problem("InvalidCertificate", message, remedy=remedy) from error


def _pair_in(folder: Path) -> Pair:
    from reconcile.admission.certificates import Pair

    return Pair(certificate=(folder / "tls.crt").read_bytes(), key=(folder / "tls.key").read_bytes())


@contextmanager
def _listening(option: str, address: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, OverflowError) as error:
        message = f"{option} {address}: {getattr(error, 'strerror', None) or error}"
        remedy = "give HOST:PORT or :PORT with a port that is free, or '' for none"
        raise problem("InvalidAddress", message, remedy=remedy) from error
