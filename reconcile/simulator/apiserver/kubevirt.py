"""`start` and `stop` of a VirtualMachine, as KubeVirt answers them. It starts no machine: an actor does.

Source: kubevirt.io/kubevirt, pkg/virt-api/rest: what can be said in spec is written there, the rest is a request in
status that the VM controller takes up.
"""

from __future__ import annotations

from typing import Any

from reconcile.cluster.errors import Conflict, NotFound
from reconcile.simulator.apiserver.store import Store
from reconcile.simulator.apiserver.write_handlers import Writes
from renderer.model.ref import Body, Ref

SUBRESOURCES = "subresources.kubevirt.io"
_API_VERSION = "kubevirt.io/v1"
_ENDED = ("Succeeded", "Failed")


class VirtualMachines:
    """The two verbs over the store."""

    def __init__(self, store: Store, writes: Writes) -> None:
        self._store = store
        self._writes = writes

    def start(self, ref: Ref, body: Body) -> Body:
        with self._store.lock:
            machine = self._machine(ref)
            strategy = _strategy(machine)
            if self._instance(ref) is not None:
                raise Conflict(ref, "VM is already running")
            if strategy == "Always":
                raise Conflict(ref, "Always does not support manual start requests")
            changed = (
                _running(machine, expected=True) if strategy == "Halted" else _requested(machine, {"action": "Start"})
            )
            self._writes.put_changed(machine, changed)
        return {}

    def stop(self, ref: Ref, body: Body) -> Body:
        with self._store.lock:
            machine, instance = self._machine(ref), self._instance(ref)
            if instance is None:
                raise Conflict(ref, "VM is not running")
            if _strategy(machine) in ("Always", "Once"):
                changed = _running(machine, expected=False)
            else:
                changed = _requested(machine, {"action": "Stop", "uid": instance["metadata"]["uid"]})
            self._writes.put_changed(machine, changed)
        return {}

    def _machine(self, ref: Ref) -> Body:
        found = self._store.find(_of(ref, "VirtualMachine"))
        if found is None:
            raise NotFound(_of(ref, "VirtualMachine"))
        return found

    def _instance(self, ref: Ref) -> Body | None:
        found = self._store.find(_of(ref, "VirtualMachineInstance"))
        ended = found is not None and (found.get("status") or {}).get("phase") in _ENDED
        return None if ended else found


def _of(ref: Ref, kind: str) -> Ref:
    return Ref(api_version=_API_VERSION, kind=kind, namespace=ref.namespace, name=ref.name)


def _strategy(machine: Body) -> str:
    spec = machine.get("spec") or {}
    return str(spec.get("runStrategy") or ("Always" if spec.get("running") else "Halted"))


def _running(machine: Body, *, expected: bool) -> dict[str, Any]:
    """Sets the field that the machine uses; a change of spec counts as a generation."""
    spec = dict(machine["spec"])
    if "runStrategy" in spec:
        spec["runStrategy"] = "Always" if expected else "Halted"
    else:
        spec["running"] = expected
    generation = int(machine["metadata"].get("generation", 0)) + 1
    return {**machine, "spec": spec, "metadata": {**machine["metadata"], "generation": generation}}


def _requested(machine: Body, request: dict[str, Any]) -> dict[str, Any]:
    return {**machine, "status": {**(machine.get("status") or {}), "stateChangeRequests": [request]}}
