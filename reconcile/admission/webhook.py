"""Puts the webhook together: the judge, the server that asks it, and the upkeep of its certificates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from reconcile.admission.judging import AdmissionJudge, JudgeConfig
from reconcile.admission.rotation import Lifetimes
from reconcile.admission.stored import WebhookObjects
from reconcile.admission.upkeep import CertificateUpkeep, UpkeepConfig
from reconcile.admission.webhook_server import OnReview, WebhookServer, log_nothing
from reconcile.cluster.protocol import Cluster
from reconcile.observe.kept_fields import for_checks
from reconcile.observe.readings import Readings
from reconcile.observe.server_certificates import Dial
from reconcile.observe.source import DirectSource
from reconcile.preflight.check_context import checks_of
from reconcile.schemas import Schemas
from renderer.assemble import TemplateSet
from renderer.templating import Templates

_AT_ONCE = 8
"""Reads at a time, of all requests together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig:
    """`leads` says whether this one may write, and `must_lead` raises if it may not. `clock` is monotonic, `now` has a
    time zone."""

    address: str
    objects: WebhookObjects
    cluster: Cluster
    template_set: TemplateSet
    schemas: Schemas
    leads: Callable[[], bool]
    must_lead: Callable[[], None]
    dial: Dial
    log: Callable[[str, Mapping[str, Any]], None]
    now: Callable[[], datetime]
    clock: Callable[[], float]
    random: Callable[[], float]
    lifetimes: Lifetimes = field(default_factory=Lifetimes)
    on_review: OnReview = log_nothing


class Webhook:
    """Serves from `start` to `stop`, on every replica."""

    def __init__(self, config: WebhookConfig) -> None:
        self._judge = AdmissionJudge(_judge_config(config))
        self._server = WebhookServer(
            config.address,
            self._judge.judge,
            log=config.log,
            now=config.now,
            clock=config.clock,
            on_review=config.on_review,
        )
        self._upkeep = CertificateUpkeep(
            UpkeepConfig(
                cluster=config.cluster.guarded(config.must_lead),
                objects=config.objects,
                leads=config.leads,
                serve=self._server.use,
                log=config.log,
                now=config.now,
                clock=config.clock,
                random=config.random,
                lifetimes=config.lifetimes,
            )
        )

    @property
    def ready(self) -> bool:
        """True if a request would be answered now."""
        return self._server.serving

    @property
    def not_after(self) -> datetime | None:
        """The time when the certificate ends; None before there is one."""
        return self._server.not_after

    @property
    def port(self) -> int:
        return self._server.port

    def start(self) -> None:
        """Raises OSError and OverflowError for an address that cannot be listened at."""
        self._server.start()
        self._upkeep.start()

    def stop(self) -> None:
        """Finishes the requests that are under way."""
        self._upkeep.stop()
        self._server.stop()
        self._judge.stop()


def _judge_config(config: WebhookConfig) -> JudgeConfig:
    """The loop's templates are used by its own thread alone."""
    template_set, kinds = config.template_set, config.template_set.catalog.kinds
    return JudgeConfig(
        source=DirectSource(config.cluster, kinds, for_checks),
        pool=ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="admission-read"),
        readings=Readings(config.cluster, kinds, config.now, config.dial),
        template_set=replace(template_set, templates=Templates(template_set.tree)),
        checks=checks_of(template_set.catalog),
        schemas=config.schemas,
        clock=config.clock,
        now=config.now,
    )
