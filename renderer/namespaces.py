"""Finds the namespace of an object that does not say it: in Git the namespace is often given by the tool that applies
the file, and the first generation of Harvester's Versions had none at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body
from renderer.validation.shapes import is_namespaced

_FLEET, _HARVESTER, _LONGHORN = "fleet-local", "harvester-system", "longhorn-system"
_HOMES: Mapping[tuple[str, str], str] = {
    ("harvesterhci.io", "Version"): _HARVESTER,
    ("kubevirt.io", "KubeVirt"): _HARVESTER,
    ("cluster.x-k8s.io", "Cluster"): _FLEET,
    ("cluster.x-k8s.io", "Machine"): _FLEET,
    ("fleet.cattle.io", "Bundle"): _FLEET,
    ("management.cattle.io", "ManagedChart"): _FLEET,
    ("provisioning.cattle.io", "Cluster"): _FLEET,
    ("longhorn.io", "Engine"): _LONGHORN,
    ("longhorn.io", "Node"): _LONGHORN,
    ("longhorn.io", "Replica"): _LONGHORN,
    ("longhorn.io", "Setting"): _LONGHORN,
    ("longhorn.io", "Volume"): _LONGHORN,
    ("upgrade.cattle.io", "Plan"): "cattle-system",
}
"""(group, kind) to the one namespace in which Harvester has such objects; others are in `default`, as for kubectl."""
_PRESENT = "harvesterhci.io/v1beta1"


def is_first_generation(body: Body) -> bool:
    """A Version of the group of UpgradePlan, as Harvester's first upgrade documents have it."""
    return (body["apiVersion"], body["kind"]) == (PLAN_API_VERSION, "Version")


def placed(body: Body) -> Body:
    """The object with its namespace, and in its present API group. What has no readable metadata is left as it is."""
    metadata = body.get("metadata")
    if is_first_generation(body):
        body = {**body, "apiVersion": _PRESENT}
    if not isinstance(metadata, Mapping) or metadata.get("namespace") not in (None, ""):
        return body
    if not is_namespaced(body["apiVersion"], body["kind"]):
        return body
    return {**body, "metadata": {**metadata, "namespace": _home(body)}}


def _home(body: Body) -> str:
    if (body["kind"], body.get("type")) == ("Secret", "rke.cattle.io/machine-plan"):
        return _FLEET
    return _HOMES.get((body["apiVersion"].rpartition("/")[0], body["kind"]), "default")
