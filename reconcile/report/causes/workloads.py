"""Finds what keeps a node from being emptied: PodDisruptionBudgets that let nothing go, virtual machines that cannot
move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconcile.report.causes.cause import (
    BUDGETS,
    MIGRATIONS,
    NODES,
    PODS,
    VIRTUAL_MACHINES,
    Cause,
    DiagnosisInput,
    condition_of,
    entries,
    mapping,
    text,
)
from reconcile.report.causes.storage import last_replicas
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of

_DRAIN = "kubevirt.io/drain"
"""The taint by which KubeVirt migrates what runs on a node; the pre-drain Job sets it."""
_DRAIN_POLICY = (
    "kubectl patch settings.longhorn.io -n longhorn-system node-drain-policy --type merge "
    """-p '{"value":"allow-if-replica-is-stopped"}'"""
)
_OVER = ("Succeeded", "Failed")


def budgets(diagnosis: DiagnosisInput) -> Iterator[Cause]:
    """One for each PodDisruptionBudget that protects a pod on a node under way and allows no disruption."""
    for pod in (pod for pod in diagnosis.all(PODS) if _holds_a_node(pod, diagnosis)):
        for budget in diagnosis.all(BUDGETS):
            if look_up(budget, ("status", "disruptionsAllowed")) == 0 and _protects(budget, pod):
                yield _budget(diagnosis, budget, pod)


def machines(diagnosis: DiagnosisInput) -> Iterator[Cause]:
    """Virtual machines on nodes under way that cannot be migrated, or whose migration has failed or does not begin."""
    for machine in diagnosis.all(VIRTUAL_MACHINES):
        node = text(machine, "status", "nodeName")
        if node in diagnosis.busy and text(machine, "status", "phase") not in _OVER:
            yield from _machine(diagnosis, machine, node)


def _holds_a_node(pod: Body, diagnosis: DiagnosisInput) -> bool:
    owners = entries(pod, "metadata", "ownerReferences")
    stays = any(owner.get("kind") == "DaemonSet" for owner in owners)
    return text(pod, "spec", "nodeName") in diagnosis.busy and text(pod, "status", "phase") not in _OVER and not stays


def _protects(budget: Body, pod: Body) -> bool:
    """The selector as policy/v1 reads it: an empty one takes every pod, none takes none."""
    selector = look_up(budget, ("spec", "selector"))
    if ref_of(budget).namespace != ref_of(pod).namespace or not isinstance(selector, Mapping):
        return False
    labels = mapping(pod, "metadata", "labels")
    alike = all(labels.get(key) == value for key, value in mapping(selector, "matchLabels").items())
    return alike and all(_meets(labels, rule) for rule in entries(selector, "matchExpressions"))


def _meets(labels: Mapping[str, Any], rule: Mapping[str, Any]) -> bool:
    value, values = labels.get(rule.get("key", "")), rule.get("values") or ()
    return {
        "In": value in values,
        "NotIn": value not in values,
        "Exists": value is not None,
        "DoesNotExist": value is None,
    }.get(str(rule.get("operator")), False)


def _budget(diagnosis: DiagnosisInput, budget: Body, pod: Body) -> Cause:
    ref, node = ref_of(budget), text(pod, "spec", "nodeName")
    healthy, expected = text(budget, "status", "currentHealthy") or "0", text(budget, "status", "desiredHealthy") or "?"
    remedy = f"get more of its pods healthy: kubectl describe poddisruptionbudget -n {ref.namespace} {ref.name}"
    last: tuple[str, ...] = ()
    if ref.namespace == "longhorn-system" and "instance-manager" in ref.name:
        last = last_replicas(diagnosis, node)
        remedy = (
            f"give each of them another replica, or let stopped ones go: {_DRAIN_POLICY}"
            if last
            else "check that its engines are stopped and their volumes are healthy, then: "
            f"kubectl delete poddisruptionbudget -n {ref.namespace} {ref.name}"
        )
    return Cause(
        object=str(ref),
        what=f"allows no disruption of {ref_of(pod)}: {healthy} healthy, {expected} required"
        + (f"; {node} has the only replica of {', '.join(last)}" if last else ""),
        node=node,
        since=text(condition_of(budget, "DisruptionAllowed"), "lastTransitionTime") or diagnosis.since(node),
        remedy=remedy,
    )


def _machine(diagnosis: DiagnosisInput, machine: Body, node: str) -> Iterator[Cause]:
    ref = ref_of(machine)
    name = f"VirtualMachine {ref.namespace}/{ref.name}"
    halt = (
        f"stop it: kubectl patch virtualmachine -n {ref.namespace} {ref.name} --type merge "
        """-p '{"spec":{"runStrategy":"Halted"}}'"""
    )
    movable = condition_of(machine, "LiveMigratable")
    if movable.get("status") == "False":
        why = movable.get("message") or movable.get("reason") or "KubeVirt gives no reason"
        since = text(movable, "lastTransitionTime") or diagnosis.since(node)
        yield Cause(object=name, what=f"cannot be migrated: {why}", node=node, since=since, remedy=halt)
        return
    if (newest := _newest_migration(diagnosis, ref)) is not None:
        yield from _migration(newest, name, node, halt)
    elif movable.get("status") == "True" and not any(map(_is_under_way, diagnosis.all(MIGRATIONS))):
        yield _left_alone(diagnosis, ref, node)


def _newest_migration(diagnosis: DiagnosisInput, machine: Ref) -> Body | None:
    """Of the machine's migrations: KubeVirt makes another one where one has failed."""
    its = [
        item
        for item in diagnosis.all(MIGRATIONS)
        if (ref_of(item).namespace, text(item, "spec", "vmiName")) == (machine.namespace, machine.name)
    ]
    return max(its, key=lambda item: text(item, "metadata", "creationTimestamp"), default=None)


def _is_under_way(migration: Body) -> bool:
    return text(migration, "status", "phase") not in _OVER


def _left_alone(diagnosis: DiagnosisInput, machine: Ref, node: str) -> Cause:
    """A machine that could be migrated, while nothing is: KubeVirt migrates a few at a time."""
    found = next((item for item in diagnosis.all(NODES) if ref_of(item).name == node), {})
    tainted = any(taint.get("key") == _DRAIN for taint in entries(found, "spec", "taints"))
    patient = not any(wait.slow for wait in diagnosis.waits if wait.node == node)
    remedy = (
        "check the log of KubeVirt: kubectl logs -n harvester-system -l kubevirt.io=virt-controller"
        if tainted
        else f"set the taint again: kubectl taint node {node} {_DRAIN}=draining:NoSchedule"
    )
    return Cause(
        object=f"VirtualMachine {machine.namespace}/{machine.name}",
        what="can be migrated, and has no migration" + ("" if tainted else f"; {node} has no taint {_DRAIN}"),
        node=node,
        since=diagnosis.since(node),
        remedy="wait; KubeVirt is about to migrate it" if patient else remedy,
        patient=patient,
    )


def _migration(migration: Body, machine: str, node: str, halt: str) -> Iterator[Cause]:
    phase = text(migration, "status", "phase") or "Pending"
    if phase == "Succeeded":
        return
    why = text(migration, "status", "migrationState", "failureReason") or next(
        (str(item["message"]) for item in entries(migration, "status", "conditions") if item.get("message")), ""
    )
    said = f"migration {ref_of(migration).name} is {phase}" + (f": {why}" if why else "")
    since = text(migration, "metadata", "creationTimestamp")
    yield Cause(
        object=machine, what=said, node=node, since=since, remedy=f"free up capacity on another node, or {halt}"
    )
