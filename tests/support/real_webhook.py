"""Support for the webhook on a real API server, which reaches it by a URL on loopback: nothing else differs from what
is installed. It runs under the permissions that are installed for it and for the checks.
"""

from __future__ import annotations

import copy
import json
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

from bench.live import PLANS
from controlplane.api import ApiError
from controlplane.cluster import ControlPlane
from controlplane.waiting import until

from reconcile.admission.rotation import Lifetimes
from reconcile.admission.stored import WebhookObjects
from reconcile.admission.webhook import Webhook, WebhookConfig
from reconcile.admission.webhook_server import PATH
from reconcile.schemas import packaged_schemas
from support.installed import ACCOUNT, objects_of, text_of
from support.real_upgrade import KINDS, client, now
from support.rehearsals import inputs_of, template_set
from support.seeding import seed

OBJECTS = WebhookObjects(namespace=ACCOUNT[0], name=ACCOUNT[1])
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SECRET = f"/api/v1/namespaces/{ACCOUNT[0]}/secrets/{OBJECTS.secret.name}"
USER = ":".join(("system:serviceaccount", *ACCOUNT))
VERSION = "v1.8.0-rc1"


@dataclass
class Replica:
    """A manager's webhook. `leading` says whether it may write."""

    webhook: Webhook
    leading: Event
    lines: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def reviewed(self) -> list[Mapping[str, Any]]:
        return [fields for what, fields in self.lines if what == "admission"]


@contextmanager
def replica(
    plane: ControlPlane, kubeconfig: Path, *, leads: bool = True, lifetimes: Lifetimes | None = None
) -> Iterator[Replica]:
    leading, lines = Event(), list[tuple[str, Mapping[str, Any]]]()
    if leads:
        leading.set()
    webhook = Webhook(
        WebhookConfig(
            address="127.0.0.1:0",
            objects=OBJECTS,
            cluster=client(kubeconfig),
            template_set=template_set(),
            schemas=packaged_schemas(),
            leads=leading.is_set,
            must_lead=lambda: None,
            dial=lambda address, port: None,
            log=lambda what, fields: lines.append((what, fields)),
            now=now,
            clock=time.monotonic,
            random=random.random,
            lifetimes=lifetimes or Lifetimes(),
        )
    )
    webhook.start()
    try:
        yield Replica(webhook, leading, lines)
    finally:
        webhook.stop()


def configuration(port: int) -> Any:
    """As it is installed, but for where the webhook is."""
    (body,) = (body for body in objects_of("webhook") if body["kind"] == "ValidatingWebhookConfiguration")
    found = copy.deepcopy(json.loads(json.dumps(body)))
    for webhook in found["webhooks"]:
        service = webhook["clientConfig"].pop("service")
        assert service["path"] == PATH
        webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{service['path']}"
    return found


def plan(name: str, **spec: Any) -> Any:
    return {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": name},
        "spec": {"version": VERSION, "restoreVM": True, **spec},
    }


def refused(send: Callable[[], Any]) -> ApiError | None:
    try:
        send()
    except ApiError as error:
        return error
    return None


@contextmanager
def asked(plane: ControlPlane, port: int) -> Iterator[None]:
    """The API server asks the webhook at this port."""
    plane.api.create(CONFIGURATIONS, configuration(port))
    try:
        yield
    finally:
        plane.api.delete(f"{CONFIGURATIONS}/{OBJECTS.configuration.name}")
        until(
            "nobody is asked any more",
            lambda: not refused(lambda: plane.api.create(f"{PLANS}?dryRun=All", plan("after", version="v9.9.9"))),
        )


def is_asked(plane: ControlPlane) -> bool:
    """It takes a moment until the server follows a new configuration and its caBundle."""
    error = refused(lambda: plane.api.create(f"{PLANS}?dryRun=All", plan("canary", version="v9.9.9")))
    return error is not None and error.code == 422


WRONG = plan("wrong", version="v1.8", nodeUpgradeOption={"pauseNodes": ["charlie-1-tink-system", "charlie-2"]})


def seed_site(plane: ControlPlane) -> Path:
    """Puts a healthy cluster there; returns the manager's kubeconfig."""
    seed(client(plane.kubeconfig), [source.body for source in inputs_of("three-node").objects], KINDS)
    plane.kubectl("apply", "-f", "-", stdin=text_of("rbac", "webhook-rbac"))
    return plane.service_account_kubeconfig(*ACCOUNT)
