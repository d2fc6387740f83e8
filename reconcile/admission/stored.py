"""The webhook's objects in the cluster: the Secret that holds its certificates, and the configuration that trusts them.

Pure: reads bodies, and says what to write.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from reconcile import objects
from reconcile.admission.certificates import Pair, certificates_in
from reconcile.admission.rotation import Material
from renderer.model.ref import Body, Kind, Ref

SECRET = Kind(api_version="v1", kind="Secret", plural="secrets", namespaced=True)
CONFIGURATION = Kind(
    api_version="admissionregistration.k8s.io/v1",
    kind="ValidatingWebhookConfiguration",
    plural="validatingwebhookconfigurations",
    namespaced=False,
)
NAME = "harvester-upgrade-manager"
_MANAGED_BY, _US = "app.kubernetes.io/managed-by", "upgradeplan"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookObjects:
    """The objects of an installation's webhook, whose names begin with the installation's."""

    namespace: str
    name: str = NAME

    @property
    def secret(self) -> Ref:
        name = f"{self.name}-webhook-certificate"
        return Ref(api_version=SECRET.api_version, kind=SECRET.kind, namespace=self.namespace, name=name)

    @property
    def configuration(self) -> Ref:
        name = f"{self.name}-validating-webhook-configuration"
        return Ref(api_version=CONFIGURATION.api_version, kind=CONFIGURATION.kind, name=name)

    @property
    def service(self) -> str:
        return f"{self.name}-webhook-service"


def is_ours(secret: Body) -> bool:
    """True if we may write it: another one of that name belongs to its creator."""
    return (secret["metadata"].get("labels") or {}).get(_MANAGED_BY) == _US


def material_in(secret: Body) -> Material:
    """All that can be read of it."""
    data = {key: _decoded(value) for key, value in (secret.get("data") or {}).items()}
    return Material(
        authorities=certificates_in(data.get("ca.crt", b"")),
        authority_key=data.get("ca.key", b""),
        serving=Pair(certificate=data.get("tls.crt", b""), key=data.get("tls.key", b"")),
    )


def data_of(material: Material) -> Mapping[str, str]:
    found = {
        "ca.crt": material.bundle,
        "ca.key": material.authority_key,
        "tls.crt": material.serving.certificate,
        "tls.key": material.serving.key,
    }
    return {key: _encoded(value) for key, value in found.items()}


def new_secret(material: Material, ref: Ref) -> Body:
    metadata = {"name": ref.name, "namespace": ref.namespace, "labels": {_MANAGED_BY: _US}}
    kind = {"apiVersion": SECRET.api_version, "kind": SECRET.kind, "type": "kubernetes.io/tls"}
    return {**kind, "metadata": metadata, "data": data_of(material)}


def names_for(configuration: Body | None, of: WebhookObjects) -> tuple[str, ...]:
    """The names by which the API server calls the webhook, each once; those of its Service where nothing says how."""
    clients = [_client(webhook) for webhook in _webhooks(configuration)]
    found = [name for client in clients for name in _names(client)]
    return tuple(dict.fromkeys(found)) or tuple(_service_names(of.namespace, of.service))


def trusted_by(configuration: Body | None) -> Collection[bytes] | None:
    """The authorities that all of its webhooks trust; None where there is no webhook."""
    bundles = [set(certificates_in(_decoded(_client(item).get("caBundle")))) for item in _webhooks(configuration)]
    return set.intersection(*bundles) if bundles else None


def trusting(configuration: Body, bundle: bytes) -> Sequence[Body]:
    """The JSON patch after which each of its webhooks trusts the bundle, and none other; empty where all do."""
    operations: list[Body] = []
    for index, webhook in enumerate(_webhooks(configuration)):
        client = _client(webhook)
        if client and _decoded(client.get("caBundle")) != bundle:
            path = f"/webhooks/{index}"
            operations.append({"op": "test", "path": f"{path}/name", "value": webhook.get("name")})
            operations.append({"op": "add", "path": f"{path}/clientConfig/caBundle", "value": _encoded(bundle)})
    return operations


def _webhooks(configuration: Body | None) -> list[Mapping[str, Any]]:
    return [item for item in objects.items((configuration or {}).get("webhooks")) if isinstance(item, Mapping)]


def _client(webhook: Mapping[str, Any]) -> Mapping[str, Any]:
    return webhook.get("clientConfig") or {}


def _names(client: Mapping[str, Any]) -> Iterator[str]:
    service, url = client.get("service"), client.get("url")
    if service:
        yield from _service_names(service["namespace"], service["name"])
    elif url and (host := urlsplit(url).hostname):
        yield host


def _service_names(namespace: str, name: str) -> Iterator[str]:
    """The API server asks for the first; people with curl for the second."""
    yield f"{name}.{namespace}.svc"
    yield f"{name}.{namespace}.svc.cluster.local"


def _decoded(value: Any) -> bytes:
    try:
        return base64.b64decode(value or "", validate=True)
    except (TypeError, ValueError, binascii.Error):
        return b""


def _encoded(value: bytes) -> str:
    return base64.b64encode(value).decode()
