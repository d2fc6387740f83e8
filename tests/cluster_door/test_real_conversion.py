"""A conversion webhook that is away, on a real API server: whatever is asked in the version that must be converted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from controlplane.cluster import ControlPlane

from cluster_door.kinds import ref
from cluster_door.real import wait_until
from reconcile.cluster import errors
from reconcile.cluster.protocol import Cluster, Selection
from renderer.model.ref import Kind

OLD = Kind(api_version="example.org/v1", kind="Gadget", plural="gadgets", namespaced=True)
NEW = Kind(api_version="example.org/v2", kind="Gadget", plural="gadgets", namespaced=True)
DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
NAMES = {"plural": "gadgets", "kind": "Gadget", "singular": "gadget", "listKind": "GadgetList"}
NOBODY = "https://127.0.0.1:1/convert"


def version(name: str, *, storage: bool) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": name, "served": True, "storage": storage, "schema": {"openAPIV3Schema": schema}}


@pytest.fixture
def stored(control_plane: ControlPlane, client: Cluster, namespace: str) -> Iterator[str]:
    """The namespace of a gadget that is stored as v1 and cannot be read as v2."""
    webhook = {"clientConfig": {"url": NOBODY}, "conversionReviewVersions": ["v1"]}
    spec = {
        "group": "example.org",
        "scope": "Namespaced",
        "names": NAMES,
        "versions": [version("v1", storage=True), version("v2", storage=False)],
        "conversion": {"strategy": "Webhook", "webhook": webhook},
    }
    metadata = {"name": "gadgets.example.org"}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": metadata}
    control_plane.api.create(DEFINITION, {**body, "spec": spec})
    gadget = {"apiVersion": OLD.api_version, "kind": "Gadget", "metadata": {"name": "a", "namespace": namespace}}

    def is_served() -> bool:
        try:
            client.create(OLD, gadget, field_manager="test")
        except errors.NoSuchKind:
            return False
        return True

    wait_until(is_served)
    yield namespace
    control_plane.api.delete(f"{DEFINITION}/gadgets.example.org")


def test_it_is_away_and_named_and_nothing_is_called_invalid(client: Cluster, stored: str) -> None:
    gadget = {"apiVersion": NEW.api_version, "kind": "Gadget", "metadata": {"name": "a", "namespace": stored}}
    for ask in (
        lambda: client.get(NEW, ref(NEW, "a", stored)),
        lambda: client.list(Selection(kind=NEW, namespace=stored)),
        lambda: client.apply(NEW, {**gadget, "spec": {"a": 1}}),
        lambda: client.apply(NEW, {**gadget, "spec": {"a": 1}}, dry_run=True),
    ):
        with pytest.raises(errors.Away) as caught:
            ask()
        assert "conversion webhook for example.org/v" in str(caught.value)
        assert "Kind=Gadget is unavailable: " in str(caught.value)
    assert client.get(OLD, ref(OLD, "a", stored)).body["metadata"]["name"] == "a"
