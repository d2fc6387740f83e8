"""Findings about the cluster's objects before an upgrade begins: nodes that it would wait for in vain or pass over,
virtual machines that it stops. Pure; the loop meets the same things later, when they cost hours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from renderer.documents import Inputs
from renderer.errors import Problem
from renderer.model.path import ABSENT, Path, look_up
from renderer.source_document import SourceDocument
from renderer.suggest import did_you_mean
from renderer.versions import is_too_old

_LABELS: Path = ("metadata", "labels")
_MANAGED: Path = (*_LABELS, "harvesterhci.io/managed")
_HOSTNAME: Path = (*_LABELS, "kubernetes.io/hostname")
_WITNESS: Path = (*_LABELS, "node-role.harvesterhci.io/witness")
_UNSCHEDULABLE: Path = ("spec", "unschedulable")
_LIVE_MIGRATABLE = "LiveMigratable"


def begin_problems(inputs: Inputs, oldest: str) -> list[Problem]:
    """Reasons for the loop not to begin on this cluster, whatever the plan is."""
    return list(_version_problems(inputs, oldest))


def cluster_problems(inputs: Inputs) -> list[Problem]:
    """Clusters for which nothing can be rendered."""
    return list(_only_witnesses(inputs))


def rehearsal_problems(inputs: Inputs) -> list[Problem]:
    """Nodes that a rehearsal would wait for and never see."""
    nodes = _managed(inputs)
    if not nodes:
        message = 'no Node with the label harvesterhci.io/managed: "true" among the inputs: there is nothing to upgrade'
        remedy = "add what kubectl get nodes -o yaml prints"
        return [Problem(reason="MissingInput", message=message, remedy=remedy)]
    return [_no_hostname(node) for node in nodes if not _has(node, _HOSTNAME)]


def cluster_warnings(inputs: Inputs) -> list[Problem]:
    """Things that are allowed and surprise: nodes that are passed over or uncordoned, machines that are stopped."""
    if _begun(inputs):
        return []
    nodes = _of_kind(inputs, "v1", "Node")
    managed = _managed(inputs)
    return [
        *(_no_hostname(node) for node in managed if not _has(node, _HOSTNAME)),
        *(_passed_over(node) for node in nodes if managed and node not in managed),
        *(_cordoned(node) for node in managed if look_up(node.body, _UNSCHEDULABLE) is True),
        *_stopped(inputs, managed),
        *_other_version(inputs),
    ]


# ------------------------------------------------------------------------------------------------------------ nodes


def _no_hostname(node: SourceDocument) -> Problem:
    message = f"Node {_name(node)} has no label kubernetes.io/hostname, by which its Jobs find it: they would never run"
    remedy = f"its kubelet sets it: kubectl label node {_name(node)} kubernetes.io/hostname={_name(node)}"
    return node.problem("NodeNotSelectable", message, _HOSTNAME, remedy=remedy)


def _passed_over(node: SourceDocument) -> Problem:
    message = (
        f'Node {_name(node)} has no label harvesterhci.io/managed: "true", so it is not upgraded; Rancher upgrades its '
        "Kubernetes with the cluster all the same, and waits for an answer when it asks to drain it"
    )
    remedy = f"kubectl label node {_name(node)} harvesterhci.io/managed=true, or remove the node from the cluster first"
    return node.problem("NodeNotManaged", message, _MANAGED, remedy=remedy)


def _cordoned(node: SourceDocument) -> Problem:
    message = f"Node {_name(node)} is cordoned, and Rancher uncordons it when it is upgraded"
    remedy = f"uncordon it before the upgrade, or cordon it again afterwards: kubectl cordon {_name(node)}"
    return node.problem("NodeCordoned", message, _UNSCHEDULABLE, remedy=remedy)


def _only_witnesses(inputs: Inputs) -> Iterator[Problem]:
    managed = _managed(inputs)
    if managed and all(_is_witness(node) for node in managed):
        message = "every managed node is a witness; none can run the upgrade's repository or virtual machines"
        remedy = "add the cluster's other Node objects to the inputs"
        yield managed[0].problem("OnlyWitnesses", message, _WITNESS, remedy=remedy)


# ----------------------------------------------------------------------------------------------------- other objects


def _version_problems(inputs: Inputs, oldest: str) -> Iterator[Problem]:
    for source, path in _current_versions(inputs):
        current = look_up(source.body, path)
        if is_too_old(str(current), oldest):
            message = f"the cluster runs {current}, and only {oldest} or newer can be upgraded"
            remedy = f"upgrade it to {oldest} or newer first, as the documentation of that release describes"
            yield source.problem("VersionTooOld", message, path, remedy=remedy)
        return


def _current_versions(inputs: Inputs) -> Iterator[tuple[SourceDocument, Path]]:
    """The places that say the version that runs now; the first one counts."""
    if inputs.plan and isinstance(look_up(inputs.plan.body, ("status", "previousVersion")), str):
        yield inputs.plan, ("status", "previousVersion")
    for setting in _of_kind(inputs, "harvesterhci.io/v1beta1", "Setting"):
        for key in ("value", "default"):
            if _name(setting) == "server-version" and setting.body.get(key):
                yield setting, (key,)


def _stopped(inputs: Inputs, managed: list[SourceDocument]) -> Iterator[Problem]:
    """On a single node every virtual machine stops, and nobody expects it to move."""
    restored = inputs.plan is not None and look_up(inputs.plan.body, ("spec", "restoreVM")) is True
    if restored or sum(not _is_witness(node) for node in managed) < 2:
        return
    for instance in _of_kind(inputs, "kubevirt.io/v1", "VirtualMachineInstance"):
        if (index := _tied_by(instance)) is not None:
            path: Path = ("status", "conditions", index)
            why = look_up(instance.body, (*path, "message")) or "its condition LiveMigratable is False"
            message = f"{_full_name(instance)} is stopped when its node is drained, and not started again: {why}"
            remedy = "set spec.restoreVM: true, or stop and start it yourself"
            yield instance.problem("VirtualMachineStopped", message, path, remedy=remedy)


def _tied_by(instance: SourceDocument) -> int | None:
    """The condition that says that the instance cannot be migrated."""
    for index, condition in enumerate(instance.body.get("status", {}).get("conditions", ())):
        if (condition.get("type"), condition.get("status")) == (_LIVE_MIGRATABLE, "False"):
            return index
    return None


def _other_version(inputs: Inputs) -> Iterator[Problem]:
    """Of a Version that is named and is not there, while another one is."""
    expected = look_up(inputs.plan.body, ("spec", "version")) if inputs.plan else None
    there = _of_kind(inputs, "harvesterhci.io/v1beta1", "Version")
    if not inputs.plan or not isinstance(expected, str) or not there or look_up(inputs.plan.body, ("spec", "image")):
        return
    spaces = [str(item.body["metadata"]["namespace"]) for item in there if _name(item) == expected]
    if "harvester-system" not in spaces:
        elsewhere = f"; there is one in {spaces[0]}" if spaces else did_you_mean(expected, map(_name, there))
        message = f"Version harvester-system/{expected} is not among the inputs{elsewhere}"
        remedy = f"there are: {', '.join(sorted(map(_full_name, there)))}"
        yield inputs.plan.problem("NoSuchVersion", message, ("spec", "version"), remedy=remedy)


# ------------------------------------------------------------------------------------------------------------ look-ups


def _begun(inputs: Inputs) -> bool:
    return inputs.plan is not None and bool(look_up(inputs.plan.body, ("status", "currentPhase")))


def _managed(inputs: Inputs) -> list[SourceDocument]:
    return [node for node in _of_kind(inputs, "v1", "Node") if look_up(node.body, _MANAGED) == "true"]


def _is_witness(node: SourceDocument) -> bool:
    return look_up(node.body, _WITNESS) not in (ABSENT, "false")


def _has(source: SourceDocument, path: Path) -> bool:
    return bool(look_up(source.body, path))


def _of_kind(inputs: Inputs, api_version: str, kind: str) -> list[SourceDocument]:
    named = (api_version, kind)
    return [source for source in inputs.objects if (source.body["apiVersion"], source.body["kind"]) == named]


def _name(source: SourceDocument) -> str:
    return str(source.body["metadata"]["name"])


def _full_name(source: SourceDocument) -> str:
    metadata: Mapping[str, Any] = source.body["metadata"]
    return f"{source.body['kind']} {metadata['namespace']}/{metadata['name']}"
