"""The helpers of an upgrade's Jobs as commands on a real API server.

KubeVirt is not there: nobody serves `start`, `stop` and its health endpoint, so every stop fails. What they answer is
played on the embedded cluster (test_toolkit.py).
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import pytest
from bench.live import PLANS
from controlplane.cluster import ControlPlane

from renderer.cli.program import run

pytestmark = pytest.mark.controlplane

PLAN = "hvst-upgrade-864fh"
LIST = f"/api/v1/namespaces/harvester-system/configmaps/{PLAN}-restore-vm"
DEFAULT = "/apis/kubevirt.io/v1/namespaces/default"


@pytest.fixture
def plane(wiped_control_plane: ControlPlane) -> ControlPlane:
    api = wiped_control_plane.api
    for name in ("n1", "n2"):
        api.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        api.patch(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})  # as once it is ready: a new one takes no pods
    plan = {
        "apiVersion": "management.harvesterhci.io/v1beta1",
        "kind": "UpgradePlan",
        "metadata": {"name": PLAN},
        "spec": {"version": "v1.8.0"},
    }
    api.create(PLANS, plan)
    status = {"previousVersion": "v1.7.1", "releaseMetadata": {"harvester": "v1.8.0", "minUpgradableVersion": "v1.7.0"}}
    api.patch(f"{PLANS}/{PLAN}/status", {"status": status})
    for name in ("nic", "web"):
        api.create(f"{DEFAULT}/virtualmachines", machine(name))
        api.create(f"{DEFAULT}/virtualmachineinstances", instance(name))
    return wiped_control_plane


def machine(name: str) -> Mapping[str, Any]:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachine",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"runStrategy": "RerunOnFailure", "template": {"spec": {"domain": {"devices": {}}}}},
    }


def instance(name: str) -> Mapping[str, Any]:
    devices = {"hostDevices": [{"name": "nic", "deviceName": "intel.com/nic"}]} if name == "nic" else {}
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "namespace": "default", "labels": {"kubevirt.io/nodeName": "n1"}},
        "spec": {"domain": {"devices": devices}},
        "status": {"phase": "Running", "nodeName": "n1"},
    }


def called(plane: ControlPlane, *words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = run(["upgradeplan", *words, "--kubeconfig", str(plane.kubeconfig)])
    return status, out.getvalue(), err.getvalue()


def told(plane: ControlPlane) -> set[tuple[str, str, str]]:
    events = plane.api.get("/api/v1/namespaces/default/events")["items"]
    return {(event["source"]["component"], event["type"], event["reason"]) for event in events}


def test_a_walk(plane: ControlPlane) -> None:
    status, out, err = called(plane, "vm-live-migrate-detector", "n1", "--shutdown", "--upgrade", PLAN)
    assert (status, err) == (0, "")
    assert "Non-migratable VM(s): [default/nic]" in out
    assert "failed to stop VM default/nic" in out, "nobody serves the subresource"
    made = plane.api.get(LIST)
    assert made["data"] == {"n1": "default/nic"}
    assert [owner["name"] for owner in made["metadata"]["ownerReferences"]] == [PLAN]

    plane.api.delete(f"{DEFAULT}/virtualmachineinstances/nic")
    status, out, _ = called(plane, "vm-live-migrate-detector", "n1", "--upgrade", PLAN, "--log-format", "json")
    assert status == 0
    assert "Non-migratable VM(s): []" in [json.loads(line)["msg"] for line in out.splitlines()]
    assert plane.api.get(LIST)["data"] == {"n1": "default/nic"}, "a second run forgets nothing"

    status, out, _ = called(plane, "restore-vm", "--node", "n2", "--upgrade", PLAN)
    assert (status, "No VMs to restore" in out) == (0, True)
    assert told(plane) == {
        ("vm-live-migrate-detector", "Normal", "RestoreVMConfigMapCreated"),
        ("vm-live-migrate-detector", "Normal", "VMShutdownFailed"),
        ("vm-live-migrate-detector", "Normal", "VMShutdownCompleted"),
        ("restore-vm", "Normal", "RestoreVMCompleted"),
    }


def test_the_version_guard(plane: ControlPlane) -> None:
    status, out, _ = called(plane, "version-guard", PLAN)
    assert status == 0
    assert "v1.7.1 may be upgraded to v1.8.0 (minimum v1.7.0)" in out
    status, _, err = called(plane, "version-guard", PLAN, "--strict=false", "--min-upgradable-version", "v1.7.2")
    assert status == 1
    assert "minimum v1.7.2" in err
    status, _, err = called(plane, "version-guard", "gone")
    assert (status, "UpgradePlan gone not found" in err) == (1, True)
