"""The objects that KubeVirt's controllers create: the instance of a virtual machine, and its migration."""

from __future__ import annotations

from reconcile.simulator.actors.actor_context import mark, owner_reference
from renderer.model.ref import Body

NODE_NAME = "kubevirt.io/nodeName"


def instance_of(machine: Body, node: str) -> Body:
    template, metadata = machine["spec"]["template"], machine["metadata"]
    labels = {**((template.get("metadata") or {}).get("labels") or {}), NODE_NAME: node}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": labels,
            "ownerReferences": [owner_reference(machine)],
        },
        "spec": template["spec"],
        "status": {
            "phase": "Running",
            "nodeName": node,
            "conditions": [{"type": type_, "status": "True"} for type_ in ("Ready", "LiveMigratable")],
        },
    }


def migration_name(instance: Body, number: int) -> str:
    return f"kubevirt-evacuation-{mark(str(instance['metadata']['uid']))}-{number}"


def migration_of(instance: Body, number: int) -> Body:
    metadata = instance["metadata"]
    name = migration_name(instance, number)
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstanceMigration",
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": {"kubevirt.io/vmi-name": metadata["name"]},
            "ownerReferences": [owner_reference(instance)],
        },
        "spec": {"vmiName": metadata["name"]},
    }
