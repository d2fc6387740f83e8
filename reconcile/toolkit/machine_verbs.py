"""`start` and `stop` of a VirtualMachine, KubeVirt's subresources, and whether KubeVirt answers at all."""

from __future__ import annotations

from enum import StrEnum

from reconcile.cluster.errors import ClusterError
from reconcile.cluster.protocol import Cluster, Selection
from renderer.model.ref import Kind, Ref

_SUBRESOURCES = "subresources.kubevirt.io/v1"
_VERBS = Kind(api_version=_SUBRESOURCES, kind="VirtualMachine", plural="virtualmachines", namespaced=True)
VIRTUAL_MACHINE = Kind(api_version="kubevirt.io/v1", kind="VirtualMachine", plural="virtualmachines", namespaced=True)
INSTANCE = Kind(
    api_version="kubevirt.io/v1", kind="VirtualMachineInstance", plural="virtualmachineinstances", namespaced=True
)
HEALTH = Kind(api_version=_SUBRESOURCES, kind="Health", plural="healthz", namespaced=False)
"""KubeVirt's health endpoint. It stands where the API server expects a collection, and RBAC sees a list of it."""


class MachineVerb(StrEnum):
    """A subresource that acts."""

    START = "start"
    STOP = "stop"


def machine_ref(ref: Ref) -> Ref:
    """The VirtualMachine of an instance: it has the instance's name."""
    return Ref(
        api_version=VIRTUAL_MACHINE.api_version,
        kind=VIRTUAL_MACHINE.kind,
        namespace=ref.namespace,
        name=ref.name,
    )


def send(cluster: Cluster, ref: Ref, verb: MachineVerb) -> None:
    """Raises `ClusterError`, a Conflict where the machine is in that state already."""
    target = Ref(api_version=_VERBS.api_version, kind=_VERBS.kind, namespace=ref.namespace, name=ref.name)
    cluster.put(_VERBS, target, verb.value)


def unhealthy(cluster: Cluster) -> ClusterError | None:
    """The error with which KubeVirt's health endpoint answers; None where it is well."""
    try:
        cluster.list(Selection(kind=HEALTH))
    except ClusterError as error:
        return error
    return None
