"""The kinds that these tests speak of, and short ways to name their objects."""

from __future__ import annotations

from typing import Any

from renderer.model.ref import Kind, Ref

CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
DEPLOYMENT = Kind(api_version="apps/v1", kind="Deployment", plural="deployments", namespaced=True)
NAMESPACE = Kind(api_version="v1", kind="Namespace", plural="namespaces", namespaced=False)
NODE = Kind(api_version="v1", kind="Node", plural="nodes", namespaced=False)
POD = Kind(api_version="v1", kind="Pod", plural="pods", namespaced=True)
SECRET = Kind(api_version="v1", kind="Secret", plural="secrets", namespaced=True)
SERVICE = Kind(api_version="v1", kind="Service", plural="services", namespaced=True)
UPGRADE_PLAN = Kind(
    api_version="management.harvesterhci.io/v1beta1", kind="UpgradePlan", plural="upgradeplans", namespaced=False
)
VIRTUAL_MACHINE = Kind(
    api_version="subresources.kubevirt.io/v1", kind="VirtualMachine", plural="virtualmachines", namespaced=True
)
WIDGET = Kind(api_version="example.org/v1", kind="Widget", plural="widgets", namespaced=True)
"""A kind that no cluster of these tests serves."""

BY_NAME = {
    kind.kind: kind
    for kind in (
        CONFIG_MAP,
        DEPLOYMENT,
        NAMESPACE,
        NODE,
        POD,
        SECRET,
        SERVICE,
        UPGRADE_PLAN,
        VIRTUAL_MACHINE,
        WIDGET,
    )
}


def ref(kind: Kind, name: str, namespace: str = "") -> Ref:
    return Ref(api_version=kind.api_version, kind=kind.kind, namespace=namespace, name=name)


def config_map(name: str, namespace: str = "default", **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": data,
    }
