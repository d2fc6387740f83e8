"""The table of what keeps a virtual machine on its node: each row alone, next to what looks like it and does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconcile.probes.rules.live_migration import MigrationTargets, is_restored, obstacles
from renderer.cluster_rules import unusable_nodes
from renderer.context.facts import Facts
from renderer.context.nodes import nodes_of

Spec = Mapping[str, Any]


def node(name: str, **spec: Any) -> Mapping[str, Any]:
    return {"metadata": {"name": name, "labels": {"zone": name}}, "spec": spec}


A, B, C = node("a"), node("b"), node("c")
WITNESS = {"metadata": {"name": "w", "labels": {"node-role.harvesterhci.io/witness": ""}}, "spec": {}}
CORDONED = node("b", unschedulable=True)
CPU_MANAGER = {"metadata": {"name": "b", "labels": {"zone": "b", "cpumanager": "true"}}, "spec": {}}
ONLY_NODE = "there is no other node that runs virtual machines"
WORDS = "cannot migrate VMI: PVC boot is not shared, live migration requires that all PVCs must be shared"


def only_in(*zones: str) -> Spec:
    terms = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": list(zones)}]}]
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    }


def devices(**found: Any) -> Spec:
    return {"domain": {"devices": found}}


def machine(spec: Spec, *conditions: Spec) -> Mapping[str, Any]:
    return {"metadata": {"name": "m"}, "spec": spec, "status": {"nodeName": "a", "conditions": list(conditions)}}


def migratable(status: str, **others: str) -> Spec:
    return {"type": "LiveMigratable", "status": status, **others}


PINNED = {"domain": {"cpu": {"dedicatedCpuPlacement": True}}}
CD_ROM = {"name": "cdrom-disk", "cdrom": {"bus": "sata"}}
DISK = {"name": "disk-0", "disk": {"bus": "virtio"}}
GPU = {"name": "gpu1", "deviceName": "nvidia.com/TU104GL"}


@pytest.mark.parametrize(
    ("instance", "nodes", "found"),
    [
        (machine({}), [A], [f"OnlyNode: {ONLY_NODE}"]),
        (machine({"nodeSelector": {"zone": "a"}}), [A, WITNESS], [f"OnlyNode: {ONLY_NODE}"]),
        (machine({"nodeSelector": {"zone": "a"}}), [A, B], ["NodeSelector: it has a node selector: zone=a"]),
        (
            machine(devices(hostDevices=[GPU])),
            [A, B],
            ["HostDevices: it has devices of the host: gpu1 (nvidia.com/TU104GL)"],
        ),
        (machine({}), [A, CORDONED], ["NoOtherNode: no other node can run it: b is cordoned"]),
        (
            machine(only_in("a")),
            [A, CORDONED, C],
            ["NoOtherNode: no other node can run it: b is cordoned, c does not match its node affinity"],
        ),
        (machine(devices(gpus=[GPU])), [A, B], ["GPUs: it has GPUs: gpu1 (nvidia.com/TU104GL)"]),
        (
            machine(PINNED),
            [A, B],
            ["PinnedCPUs: its CPUs are pinned, and no other node that could run it has the CPU manager"],
        ),
        (machine(devices(disks=[DISK, CD_ROM])), [A, B], ["CDROM: it has a CD-ROM: cdrom-disk"]),
        (
            machine({}, migratable("False", reason="DisksNotLiveMigratable", message=WORDS)),
            [A, B],
            [f"NotLiveMigratable: KubeVirt says: {WORDS}"],
        ),
        (
            machine({}, migratable("False", reason="DisksNotLiveMigratable")),
            [A, B],
            ["NotLiveMigratable: KubeVirt says: DisksNotLiveMigratable"],
        ),
    ],
)
def test_what_keeps_a_machine_on_its_node(instance: Any, nodes: Sequence[Any], found: list[str]) -> None:
    assert [f"{each.reason}: {each.text}" for each in obstacles(instance, MigrationTargets(nodes))] == found


@pytest.mark.parametrize(
    ("instance", "nodes"),
    [
        (machine({}), [A, B]),
        (machine({}, migratable("True")), [A, B]),
        (machine({}, migratable("Unknown", message=WORDS)), [A, B]),
        (machine(only_in("a", "c")), [A, CORDONED, C]),
        (machine({"nodeSelector": {}, **devices(hostDevices=[], gpus=[], disks=[DISK])}), [A, B]),
        (machine(PINNED), [A, CPU_MANAGER]),
        (machine({"domain": {"cpu": {"dedicatedCpuPlacement": False}}}), [A, B]),
    ],
)
def test_what_looks_like_an_obstacle_and_is_none(instance: Any, nodes: Sequence[Any]) -> None:
    assert obstacles(instance, MigrationTargets(nodes)) == ()


def test_all_obstacles_are_said_and_which_of_them_harvesters_detector_knows() -> None:
    spec = {"nodeSelector": {"zone": "a"}, **devices(gpus=[GPU], disks=[CD_ROM])}
    found = obstacles(machine(spec, migratable("False", message=WORDS)), MigrationTargets([A, B]))
    assert [(each.reason, each.detected) for each in found] == [
        ("NodeSelector", True),
        ("GPUs", False),
        ("CDROM", False),
        ("NotLiveMigratable", False),
    ]


@pytest.mark.parametrize(
    ("instance", "restored"),
    [
        (machine({}), True),
        (machine({}, {"type": "Paused", "status": "False"}), True),
        (machine({}, {"type": "Paused", "status": "True"}), False),
        ({**machine({}), "metadata": {"labels": {"harvesterhci.io/upgrade": "hvst-upgrade-1"}}}, False),
        ({**machine({}), "metadata": {"labels": {"harvesterhci.io/upgrade": ""}}}, True),
    ],
)
def test_what_is_started_again(instance: Any, restored: bool) -> None:
    assert is_restored(instance) is restored


@pytest.mark.parametrize(("value", "witness"), [("true", True), ("", True), ("yes", True), ("false", False)])
def test_a_witness_is_one_wherever_it_is_asked(value: str, witness: bool) -> None:
    """As a target of migrations, in templates, and as a node of which there may be too few."""
    labels = {"node-role.harvesterhci.io/witness": value, "harvesterhci.io/managed": "true"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "w", "labels": labels}}
    plan = {"metadata": {"name": "up"}, "spec": {"nodeUpgradeOption": {"pauseNodes": None}}}
    [rendered] = nodes_of(Facts(plan=plan, objects=(node,), values={}, spec_fields={}), plan)
    assert rendered["witness"] is witness
    assert ("OnlyWitnesses" in {problem.reason for problem in unusable_nodes([node])}) is witness
    assert bool(obstacles(machine({}), MigrationTargets([A, node]))) is witness
