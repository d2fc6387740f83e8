"""What the other nodes lack for a virtual machine that would be migrated: CPU, room, and who may run beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from reconcile.probes.rules.live_migration import MigrationTargets, obstacles

Body = Mapping[str, Any]


def node(name: str, labels: Body | None = None, *, memory: str = "16Gi", **spec: Any) -> Body:
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
    return {"metadata": metadata, "spec": spec, "status": {"allocatable": {"memory": memory, "cpu": "8"}}}


def offers(prefix: str, *names: str) -> Body:
    return {f"{prefix}.node.kubevirt.io/{name}": "true" for name in names}


def machine(name: str = "m", on: str = "a", labels: Body | None = None, **spec: Any) -> Body:
    metadata = {"name": name, "namespace": "default", "labels": labels or {}}
    return {"metadata": metadata, "spec": spec, "status": {"nodeName": on, "phase": "Running"}}


def cpu(model: str, *features: Body) -> Body:
    return {"cpu": {"model": model, "features": list(features)}}


def memory(request: str) -> Body:
    return {"resources": {"requests": {"memory": request}}}


def beside(kind: str, topology: str = "kubernetes.io/hostname", **labels: str) -> Body:
    term = {"topologyKey": topology, "labelSelector": {"matchLabels": labels}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


SOURCE = node("a", {**offers("host-model-cpu", "Skylake"), **offers("host-model-required-features", "apic", "vmx")})
LIKE = node("b", {**offers("cpu-model-migration", "Skylake"), **offers("cpu-feature", "apic", "vmx", "avx")})
OLDER = node("b", {**offers("cpu-model-migration", "Haswell"), **offers("cpu-feature", "apic", "vmx")})
POORER = node("b", {**offers("cpu-model-migration", "Skylake"), **offers("cpu-feature", "apic")})
NAMED = node("b", offers("cpu-model", "Haswell"))
UNLABELLED = node("b")
HOST_MODEL, TAINT = cpu("host-model"), {"key": "gpu", "value": "only", "effect": "NoSchedule"}
NONE = "no other node can run it: b "
FULL = "no other node has room for it: b "
APART, TOGETHER = beside("podAntiAffinity", app="db"), beside("podAffinity", app="db")


@pytest.mark.parametrize(
    ("instance", "nodes", "others", "found"),
    [
        (machine(domain=HOST_MODEL), [SOURCE, LIKE], [], ""),
        (machine(domain=HOST_MODEL), [SOURCE, UNLABELLED], [], ""),
        (machine(domain=HOST_MODEL), [SOURCE, OLDER], [], f"{NONE}lacks CPU model Skylake"),
        (machine(domain=HOST_MODEL), [SOURCE, POORER], [], f"{NONE}lacks CPU feature vmx"),
        (machine(domain=cpu("Haswell")), [SOURCE, NAMED], [], ""),
        (machine(domain=cpu("Skylake")), [SOURCE, NAMED], [], f"{NONE}lacks CPU model Skylake"),
        (machine(domain=cpu("host-passthrough")), [SOURCE, NAMED], [], ""),
        (machine(domain=cpu("", {"name": "avx512"})), [SOURCE, LIKE], [], f"{NONE}lacks CPU feature avx512"),
        (machine(domain=cpu("", {"name": "avx512", "policy": "optional"})), [SOURCE, LIKE], [], ""),
        (machine(), [SOURCE, node("b", taints=[TAINT])], [], f"{NONE}has the taint gpu"),
        (machine(tolerations=[{"key": "gpu", "operator": "Exists"}]), [SOURCE, node("b", taints=[TAINT])], [], ""),
        (machine(), [SOURCE, node("b", taints=[{**TAINT, "effect": "PreferNoSchedule"}])], [], ""),
        (machine(), [SOURCE, node("b", taints=[{"key": "kubevirt.io/drain", "effect": "NoSchedule"}])], [], ""),
        (
            machine(),
            [SOURCE, node("b", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}])],
            [],
            "",
        ),
        (
            machine(),
            [SOURCE, node("b", {"kubevirt.io/schedulable": "false"})],
            [],
            f"{NONE}is not schedulable for KubeVirt",
        ),
        (machine(domain=memory("10Gi")), [SOURCE, LIKE], [machine("n", "b", domain=memory("6Gi"))], ""),
        (
            machine(domain=memory("10Gi")),
            [SOURCE, LIKE],
            [machine("n", "b", domain=memory("7Gi"))],
            f"{FULL}has 9 GiB of memory left for virtual machines, and it requests 10 GiB of memory",
        ),
        (machine(domain=memory("10Gi")), [SOURCE, LIKE], [machine("n", "a", domain=memory("7Gi"))], ""),
        (
            machine(domain={"memory": {"guest": "20Gi"}}),
            [SOURCE, LIKE],
            [],
            f"{FULL}has 16 GiB of memory left for virtual machines, and it requests 20 GiB of memory",
        ),
        (
            machine(domain={"resources": {"requests": {"cpu": "9"}}}),
            [SOURCE, LIKE],
            [],
            f"{FULL}has 8 CPUs left for virtual machines, and it requests 9 CPUs",
        ),
        (
            machine(affinity=APART),
            [SOURCE, LIKE],
            [machine("n", "b", {"app": "db"})],
            f"{FULL}runs pods that its anti-affinity excludes",
        ),
        (machine(affinity=APART), [SOURCE, LIKE], [machine("n", "b", {"app": "web"})], ""),
        (machine(affinity=APART, labels={"app": "db"}), [SOURCE, LIKE], [], ""),
        (machine(affinity=TOGETHER), [SOURCE, LIKE], [machine("n", "b", {"app": "db"})], ""),
        (
            machine(affinity=TOGETHER),
            [SOURCE, LIKE],
            [machine("n", "a", {"app": "db"})],
            f"{FULL}runs no pod that its affinity requires",
        ),
        (machine(affinity=TOGETHER), [SOURCE, LIKE], [], ""),
    ],
)
def test_what_other_nodes_lack(instance: Body, nodes: Sequence[Body], others: Sequence[Body], found: str) -> None:
    assert "; ".join(each.text for each in obstacles(instance, MigrationTargets(nodes, [instance, *others]))) == found


def test_one_node_that_takes_it_is_enough() -> None:
    third = node("c", memory="64Gi")
    assert obstacles(machine(domain=memory("20Gi")), MigrationTargets([SOURCE, LIKE, third], [])) == ()


def test_nobody_asks_for_room_where_the_other_machines_are_not_known() -> None:
    """The helper that stops machines stops none for want of room, which may be made."""
    found = obstacles(machine(domain=memory("20Gi")), MigrationTargets([SOURCE, LIKE]))
    assert found == ()
    waits = obstacles(machine(domain=memory("20Gi")), MigrationTargets([SOURCE, LIKE], []))
    assert [(each.reason, each.detected, each.waits) for each in waits] == [("NoRoom", False, True)]


@pytest.mark.parametrize("odd", ["1e999999999", "-5", "abc", 7, True, None, {}, [1]])
def test_odd_requests_do_no_harm(odd: Any) -> None:
    instance = machine(domain={"resources": {"requests": {"memory": odd, "cpu": odd}}}, affinity={"podAffinity": odd})
    nodes = [node("a"), {**node("b"), "status": {"allocatable": {"memory": odd, "cpu": odd}}}]
    obstacles(instance, MigrationTargets(nodes, [instance, {"spec": odd, "status": odd}]))
