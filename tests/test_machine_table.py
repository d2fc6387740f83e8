"""The table of virtual machines: who moves, is stopped, is started again, blocks; on made-up machines and examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from support.rendered_plans import ROOT, templates

from reconcile.preflight.given_objects import GivenObjects
from reconcile.preflight.machines import MachineRow, MachineTable, machine_table
from reconcile.probes.rules.virtual_machines import OVERLOOKED
from reconcile.report.machine_report import machine_blocks, machine_count_line, machine_lines, machines_model
from renderer.catalog.load import load_catalog
from renderer.model.collected import CollectedKind
from renderer.validation import document_problems
from renderer.yaml_io import parse

KINDS = load_catalog(templates(), document_problems).kinds
RESTORES = {"spec": {"restoreVM": True}}
WORDS = "cannot migrate VMI: PVC boot is not shared"
NOT_MIGRATABLE = {"type": "LiveMigratable", "status": "False", "message": WORDS}
DEVICE: Mapping[str, Any] = {"domain": {"devices": {"hostDevices": [{"name": "nic"}]}}}
NIC = "it has devices of the host: nic"
NOT_MOVED = "its eviction strategy is None, so KubeVirt does not migrate it, and nothing stops it"
Object = Mapping[str, Any]


def node(name: str, *, zone: str = "a", **spec: Any) -> Object:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"zone": zone}}, "spec": spec}


def instance(name: str, *conditions: Object, on: str = "n1", **spec: Any) -> Object:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"evictionStrategy": "LiveMigrateIfPossible", **spec},
        "status": {"phase": "Running", "nodeName": on, "conditions": list(conditions)},
    }


def machine(name: str, **labels: str) -> Object:
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "metadata": metadata, "spec": {}}


def table(bodies: Sequence[Object], plan: Object | None = None, *collected: str) -> MachineTable:
    read = [CollectedKind(api_version="kubevirt.io/v1", kind=kind, namespace="", name="") for kind in collected]
    return machine_table(GivenObjects(bodies, KINDS, collected=read), plan or {})


def lines(found: MachineTable) -> list[str]:
    return [line(row) for row in found.rows]


def line(row: MachineRow) -> str:
    later = (f"; on {item.node} {item.outcome.value}: {', '.join(item.why)}" for item in row.later)
    why = f" ({'; '.join(row.why)})" if row.why else ""
    return f"{row.node or '-'} {row.namespace}/{row.name} {row.outcome.value}{why}{''.join(later)}"


NODES = [node("n1"), node("n2")]
KUBEVIRT = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt", "namespace": "x"}}
IN_A = [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
ONLY_A = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": IN_A}}}


def test_each_outcome_and_why() -> None:
    paused = {"type": "Paused", "status": "True"}
    bodies = [
        *NODES,
        KUBEVIRT,
        instance("web"),
        instance("disk", NOT_MIGRATABLE, on="n2"),
        instance("nic", **DEVICE),
        instance("asleep", paused, **DEVICE),
        instance("alone", **DEVICE),
        instance("stubborn", evictionStrategy="None"),
        instance("vgpu", domain={"devices": {"gpus": [{"name": "gpu1", "deviceName": "nvidia.com/GRID"}]}}),
        instance("install", on="n2", domain={"devices": {"disks": [{"name": "iso", "cdrom": {"bus": "sata"}}]}}),
        *(machine(name) for name in ("web", "disk", "nic", "asleep", "stubborn", "vgpu", "install", "off")),
    ]
    without = [
        f"n1 default/alone blocks ({NIC}; it has no VirtualMachine through which it could be stopped)",
        f"n1 default/asleep stopped ({NIC})",
        f"n1 default/nic stopped ({NIC})",
        f"n1 default/stubborn blocks ({NOT_MOVED})",
        f"n1 default/vgpu mayBlock (it has GPUs: gpu1 (nvidia.com/GRID); {OVERLOOKED})",
        "n1 default/web moves",
        f"n2 default/disk mayBlock (KubeVirt says: {WORDS}; {OVERLOOKED})",
        "n2 default/install moves (it has a CD-ROM: iso)",
        "- default/off off",
    ]
    assert lines(table(bodies)) == without
    restored = [text.replace(" stopped (", " startedAgain (") for text in without]
    restored[1] = f"n1 default/asleep stopped ({NIC}; it is paused, and stays off)"
    assert lines(table(bodies, RESTORES)) == restored
    (disk,) = [row for row in table(bodies).rows if row.name == "disk"]
    assert disk.kubevirt == WORDS


def test_people_see_those_that_do_not_just_move() -> None:
    bodies = [
        *(node("n1", zone="b"), node("n2"), KUBEVIRT),
        *(instance("web"), instance("nic", **DEVICE), instance("disk", NOT_MIGRATABLE, on="n2")),
        *(instance("old", affinity=ONLY_A), instance("stubborn", evictionStrategy="None")),
        *(machine(name) for name in ("web", "nic", "disk", "old", "stubborn", "off")),
    ]
    model = machines_model(table(bodies))
    assert list(machine_lines(model)) == [
        "NODE  VM                WHEN IT IS DRAINED   WHY",
        f"n1    default/nic       is stopped           {NIC}",
        "n1    default/old       moves",
        "n2    default/old       is stopped           it was moved there from n1, and no other node can run it",
        f"n1    default/stubborn  blocks the drain     {NOT_MOVED}",
        f"n2    default/disk      may block the drain  KubeVirt says: {WORDS}; {OVERLOOKED}",
        "6 virtual machines: 2 move, 1 is stopped, 1 may block the drain, 1 blocks the drain, 1 is off",
    ]
    everything = list(machine_lines(model, everything=True))
    assert everything[-2:] == [
        "-     default/off       is off",
        "6 virtual machines: 2 move, 1 is stopped, 1 may block the drain, 1 blocks the drain, 1 is off",
    ]
    assert list(machine_lines(machines_model(table(NODES, None, "VirtualMachineInstance")))) == []
    restored = machines_model(table(bodies, RESTORES))
    assert machine_count_line(restored) == (
        "6 virtual machines: 2 move, 1 is stopped and started again, 1 may block the drain, 1 blocks the drain, "
        "1 is off"
    )


def test_what_is_neither_migrated_nor_seen_by_the_detector_is_not_said_to_be_started_again() -> None:
    """A virtual GPU (harvester/harvester#10388), a disk that is not shared."""
    rows = table([*NODES, KUBEVIRT, instance("disk", NOT_MIGRATABLE), machine("disk")], RESTORES).rows
    assert [row.outcome for row in rows] == ["mayBlock"]
    alone = table([node("n1"), KUBEVIRT, instance("disk", NOT_MIGRATABLE), machine("disk")], RESTORES).rows
    assert [row.outcome for row in alone] == ["startedAgain"], "on a single node the detector stops everything"


def test_nodes_that_are_paused_before_their_drain_are_named() -> None:
    """As far as they run machines."""
    plan = {"spec": {"nodeUpgradeOption": {"pauseNodes": ["n2", "n1", "n9"]}}}
    bodies = [*NODES, node("n9"), KUBEVIRT, instance("web"), machine("web"), instance("db", on="n2"), machine("db")]
    model = machines_model(table(bodies, plan))
    line = "drained only once they are resumed, as the plan pauses before them: n1, n2"
    assert list(machine_lines(model))[-1] == line
    assert line in list(machine_blocks(model))
    assert machines_model(table(bodies))["pausedNodes"] == []


def test_what_moves_to_the_only_other_place_is_stopped_there() -> None:
    """It runs on a node that its affinity no longer allows."""
    bodies = [node("n1", zone="b"), node("n2"), KUBEVIRT, instance("web", affinity=ONLY_A), machine("web")]
    (text,) = lines(table(bodies))
    assert text == ("n1 default/web moves; on n2 stopped: it was moved there from n1, and no other node can run it")
    (text,) = lines(table([*bodies[:1], node("n2"), node("n3"), *bodies[2:]]))
    assert text == "n1 default/web moves"


def test_the_upgrades_own_and_what_has_ended_are_left_out() -> None:
    own = instance("upgrade-repo", **DEVICE)
    own = {**own, "metadata": {**own["metadata"], "labels": {"harvesterhci.io/upgrade": "u"}}}
    ended = {**instance("done"), "status": {"phase": "Succeeded", "nodeName": "n1"}}
    labels = {"harvesterhci.io/upgrade": "u"}
    bodies = [*NODES, KUBEVIRT, own, ended, machine("upgrade-repo", **labels), machine("done")]
    assert lines(table(bodies)) == ["- default/done off"]


def test_an_instance_that_has_failed_is_waited_for() -> None:
    failed = {**instance("once"), "status": {"phase": "Failed", "nodeName": "n1"}}
    assert lines(table([*NODES, KUBEVIRT, failed, machine("once")])) == [
        "n1 default/once blocks (its instance has failed and is still there, and the drain waits until it is gone)"
    ]


@pytest.mark.parametrize(
    ("bodies", "collected", "rows", "kinds"),
    [
        ([instance("web")], (), [], ["Node", "VirtualMachine", "KubeVirt"]),
        (NODES, (), [], ["VirtualMachineInstance", "VirtualMachine", "KubeVirt"]),
        ([*NODES, instance("web")], (), ["n1 default/web moves"], ["VirtualMachine", "KubeVirt"]),
        (
            [*NODES, instance("nic", **DEVICE)],
            (),
            [f"n1 default/nic stopped ({NIC})"],
            ["VirtualMachine", "KubeVirt"],
        ),
        (NODES, ("VirtualMachineInstance", "VirtualMachine", "KubeVirt"), [], []),
    ],
)
def test_what_could_not_be_read_is_said(bodies: Any, collected: Any, rows: list[str], kinds: list[str]) -> None:
    found = table(bodies, None, *collected)
    assert lines(found) == rows
    assert [failure.why for failure in found.read_failures] == [f"no {kind} objects among the inputs" for kind in kinds]


@pytest.mark.parametrize(
    ("example", "expected"),
    [
        (
            "three-node",
            [
                "charlie-1-tink-system default/web-1 moves",
                "charlie-2-tink-system default/ledger-1 startedAgain "
                "(it has a node selector: kubernetes.io/hostname=charlie-2-tink-system)",
                "charlie-3-tink-system default/build-1 moves",
            ],
        ),
    ],
)
def test_examples(example: str, expected: list[str]) -> None:
    files = sorted((ROOT / "examples" / example).glob("*.yaml"))
    documents = [found.value for file in files for found in parse(file.read_text(encoding="utf-8"), file.name)]
    given = [body for found in documents for body in (found.get("items") or [found])]
    bodies = [body for body in given if "kind" in body and "metadata" in body and "name" in body["metadata"]]
    (plan,) = [body for body in given if body.get("kind") == "UpgradePlan"]
    assert lines(table(bodies, plan)) == expected
