"""Keeps the webhook's certificates: every replica serves with what the Secret holds, and the leader renews it.

All that is known is in the Secret and the webhook's configuration, which are watched; so the next leader goes on where
this one ends. Writes are conditional: of two that believe to lead, one is refused and looks again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event, Thread
from typing import Any

from reconcile.admission.certificates import validity_of
from reconcile.admission.rotation import Lifetimes, Material, next_material, why_unusable
from reconcile.admission.stored import (
    CONFIGURATION,
    SECRET,
    WebhookObjects,
    data_of,
    is_ours,
    material_in,
    names_for,
    new_secret,
    trusted_by,
    trusting,
)
from reconcile.admission.webhook_server import ServingCertificate
from reconcile.cluster.errors import AlreadyExists, ClusterError, Conflict, NotFound
from reconcile.cluster.listwatch import ListWatch
from reconcile.cluster.protocol import Cluster, Selection
from renderer.model.ref import Body, Kind, Ref

_OFTEN = 12
"""Looks within the life of a serving certificate, at least."""
_SELDOM = 60.0
_AGAIN = 2.0
"""Seconds after which a write that was refused, or found the API server away, is tried again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepConfig:
    """`cluster` refuses writes while this one does not lead, as `leads` says beforehand. `serve` takes a certificate
    from now on; it raises OSError if it is not a pair. `clock` is monotonic, `now` has a time zone."""

    cluster: Cluster
    objects: WebhookObjects
    leads: Callable[[], bool]
    serve: Callable[[ServingCertificate], None]
    log: Callable[[str, Mapping[str, Any]], None]
    now: Callable[[], datetime]
    clock: Callable[[], float]
    random: Callable[[], float]
    lifetimes: Lifetimes = field(default_factory=Lifetimes)


class CertificateUpkeep:
    """Works in threads of its own from `start` to `stop`; `look` is one turn."""

    def __init__(self, config: UpkeepConfig) -> None:
        self._config = config
        self._secret_ref, self._configuration_ref = config.objects.secret, config.objects.configuration
        self._secret = self._watch(SECRET, self._secret_ref)
        self._configuration = self._watch(CONFIGURATION, self._configuration_ref)
        self._stopped = Event()
        self._news = Event()
        self._served: Material | None = None
        self._said = ""
        self._threads = [
            *(Thread(target=watch.run, args=(self._stopped.wait,), daemon=True) for watch in self._watches),
            Thread(target=self._work, name="certificates", daemon=True),
        ]

    @property
    def _watches(self) -> tuple[ListWatch, ListWatch]:
        return self._secret, self._configuration

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._news.set()
        for watch in self._watches:
            watch.stop()
        for thread in self._threads:
            thread.join(timeout=_AGAIN)

    def look(self) -> float:
        """Serves the existing certificate, and writes a new one when due, if this manager leads. Returns the seconds
        until the next."""
        config = self._config
        if not all(watch.health.synced for watch in self._watches):
            return self._report(self._trouble(), _AGAIN)
        secret, configuration = self._secret.find(self._secret_ref), self._configuration.find(self._configuration_ref)
        found = material_in(secret) if secret else Material()
        names = names_for(configuration, config.objects)
        why = "; ".join(why_unusable(found, names, config.now())) if secret else ""
        self._serve(found)
        try:
            if config.leads():
                why = self._keep(secret, configuration, found) or ("" if secret and is_ours(secret) else why)
        except (Conflict, AlreadyExists, NotFound):
            return _AGAIN  # somebody else was quicker; the watch brings what there is now
        except ClusterError as error:
            return self._report(error.problem.message, _AGAIN)
        return self._report(why and f"{self._secret_ref}: {why}", self._pause())

    def _keep(self, secret: Body | None, configuration: Body | None, found: Material) -> str:
        """Writes the Secret before the configuration: what is trusted must not be lost."""
        config = self._config
        kept = found
        if secret is None or is_ours(secret):
            names, trusted = names_for(configuration, config.objects), trusted_by(configuration)
            kept = next_material(found, names, config.now(), config.lifetimes, trusted)
            if kept != found or secret is None:
                self._write(secret, kept)
        if configuration is not None and kept.bundle and (operations := trusting(configuration, kept.bundle)):
            config.cluster.json_patch(CONFIGURATION, self._configuration_ref, operations)
            config.log("webhook authorities", {"object": str(self._configuration_ref)})
        return "" if kept.bundle else "ca.crt holds no certificate, so the webhook's caBundle is left as it is"

    def _write(self, secret: Body | None, material: Material) -> None:
        config = self._config
        if secret is None:
            config.cluster.create(SECRET, new_secret(material, self._secret_ref))
        else:
            metadata = {"resourceVersion": secret["metadata"]["resourceVersion"]}
            config.cluster.patch(SECRET, self._secret_ref, {"metadata": metadata, "data": data_of(material)})
        valid = validity_of(material.serving.certificate)
        ends = f"{valid.not_after:%Y-%m-%dT%H:%M:%SZ}" if valid else ""
        config.log("webhook certificate", {"object": str(self._secret_ref), "validUntil": ends})

    def _serve(self, found: Material) -> None:
        """Serves any certificate that matches its key; a client may still reject it."""
        valid = validity_of(found.serving.certificate)
        if valid is None or (self._served is not None and self._served.serving == found.serving):
            return
        pair = found.serving
        certificate = ServingCertificate(
            certificate=pair.certificate, key=pair.key, not_before=valid.not_before, not_after=valid.not_after
        )
        try:
            self._config.serve(certificate)
            self._served = found
        except OSError:
            return  # `why_unusable` says it

    def _trouble(self) -> str:
        errors = [watch.health.problem for watch in self._watches if watch.health.problem]
        return "; ".join(error.problem.message for error in errors)

    def _report(self, why: str, pause: float) -> float:
        """Says once what is wrong."""
        if why and why != self._said:
            self._config.log("webhook not ready", {"why": why})
        self._said = why
        return pause

    def _pause(self) -> float:
        return min(_SELDOM, self._config.lifetimes.serving.total_seconds() / _OFTEN)

    def _work(self) -> None:
        while not self._stopped.is_set():
            self._news.clear()
            self._news.wait(self.look())

    def _watch(self, kind: Kind, ref: Ref) -> ListWatch:
        selection = Selection(kind=kind, namespace=ref.namespace, fields=f"metadata.name={ref.name}")
        config = self._config
        return ListWatch(
            config.cluster,
            selection,
            lambda event: self._news.set(),
            clock=config.clock,
            random=config.random,
        )
