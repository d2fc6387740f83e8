"""Finds what Longhorn's volumes would lose with a node, and which of them block an upgrade."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reconcile import objects
from reconcile.probes.look import NODES, Group, ReadFailure
from reconcile.probes.rules.call import RuleCall, all_of, listed
from reconcile.probes.verdict import Verdict, failed, passed, unread
from renderer.context.facts import text_at
from renderer.model.node_labels import is_witness
from renderer.model.path import look_up
from renderer.model.ref import Body, Ref, ref_of
from renderer.quantity import quantity_of

_LONGHORN = "longhorn-system"
_VOLUMES = Group(api_version="longhorn.io/v1beta2", kind="Volume", namespace=_LONGHORN)
_REPLICAS = Group(api_version="longhorn.io/v1beta2", kind="Replica", namespace=_LONGHORN)
_CLAIMS = Group(api_version="v1", kind="PersistentVolumeClaim")
_IMAGES = Group(api_version="harvesterhci.io/v1beta1", kind="VirtualMachineImage")
_DRAIN_POLICY = Ref(api_version="longhorn.io/v1beta2", kind="Setting", namespace=_LONGHORN, name="node-drain-policy")
_HOLDING = "block-if-contains-last-replica"  # Longhorn's default
_IMAGE = "harvesterhci.io/imageId"
_GIB = 1024**3


def in_use(call: RuleCall) -> Verdict:
    """Of an attached volume: a pod that uses it runs. The pods of a machine that has moved stay listed as Succeeded."""
    workloads = objects.items(look_up(call.body, ("status", "kubernetesStatus", "workloadsStatus")))
    states = [(_text(each, "podName"), _text(each, "podStatus")) for each in workloads if isinstance(each, Mapping)]
    if not states:
        return failed("it is attached, and no workload uses it")
    if any(status == "Running" for _, status in states):
        return passed("a workload that uses it runs")
    pods = ", ".join(f"pod {pod} is {status or 'in no state'}" for pod, status in states)
    return failed(f"it is attached, and no workload that uses it runs: {pods}")


def replicas_complete(call: RuleCall) -> Verdict:
    """Of detached volumes: as many replicas as expected, or as there are nodes to put them on."""
    found = listed(call, _VOLUMES, _REPLICAS, NODES)
    if isinstance(found, Verdict):
        return found
    volumes, replicas, nodes = found
    room = sum(not is_witness(node) for node in nodes)
    of_volume = _by_volume(replicas)
    return all_of((_complete(volume, of_volume, room) for volume in volumes if _state(volume) == "detached"), "volumes")


def _complete(volume: Body, replicas: Mapping[str, Sequence[Body]], room: int) -> Verdict:
    expected, there = look_up(volume, ("spec", "numberOfReplicas")), len(replicas[ref_of(volume).name])
    if not isinstance(expected, int) or there >= min(expected, room):
        return passed(f"it has {there} replicas")
    return failed(f"it is detached and has {there} of {expected} replicas", ref_of(volume))


def survive(call: RuleCall) -> Verdict:
    """Of volumes with several replicas that are in use: one of the healthy ones is on another node than `node`."""
    found = listed(call, _VOLUMES, _REPLICAS)
    if isinstance(found, Verdict):
        return found
    lost = call.scope.worked_out.once("volumesOutlast", found, lambda: _lost_by_node(*found))
    node = call.text("node")
    if node not in lost:
        return passed(f"no volume in use has its only healthy replica on {node}")
    return all_of((failed(f"its only healthy replica is on {node}", ref) for ref in lost[node]), "volumes")


def _lost_by_node(volumes: Iterable[Body], replicas: Iterable[Body]) -> Mapping[str, Sequence[Ref]]:
    used = [volume for volume in volumes if _state(volume) in ("attached", "attaching")]
    several = [volume for volume in used if look_up(volume, ("spec", "numberOfReplicas")) != 1]
    return _by_only_place(several, filter(_is_healthy, replicas))


def drain_allowed(call: RuleCall) -> Verdict:
    """Of detached volumes: the last replica is not on `node`, or Longhorn allows the drain anyway."""
    found = listed(call, _VOLUMES, _REPLICAS)
    if isinstance(found, Verdict):
        return found
    setting = call.look.get(_DRAIN_POLICY)
    if isinstance(setting, ReadFailure):
        return unread(_DRAIN_POLICY, setting)
    policy = _text(setting or {}, "value") or _HOLDING
    if policy != _HOLDING:
        return passed(f"{_DRAIN_POLICY} is {policy}")
    held = call.scope.worked_out.once("drainAllowed", found, lambda: _held_by_node(*found))
    node = call.text("node")
    if node not in held:
        return passed(f"no detached volume has its last replica on {node}")
    says = (
        f"it is detached and its last replica is on {node}, so Longhorn blocks the drain: "
        f"Setting {_LONGHORN}/node-drain-policy is {_HOLDING}"
    )
    return all_of((failed(says, ref) for ref in held[node]), "volumes")


def _held_by_node(volumes: Iterable[Body], replicas: Iterable[Body]) -> Mapping[str, Sequence[Ref]]:
    detached = [volume for volume in volumes if _state(volume) == "detached"]
    return _by_only_place(detached, filter(_is_intact, replicas))


def _by_only_place(volumes: Iterable[Body], replicas: Iterable[Body]) -> Mapping[str, Sequence[Ref]]:
    """The volumes whose replicas among these are all on one node, by that node."""
    of_volume = _by_volume(replicas)
    found: dict[str, list[Ref]] = defaultdict(list)
    for volume in volumes:
        places = {_text(replica, "spec", "nodeID") for replica in of_volume.get(ref_of(volume).name, ())}
        if len(places) == 1:
            found[places.pop()].append(ref_of(volume))
    return found


def stays(call: RuleCall) -> Verdict:
    """Of Longhorn's Node: no eviction of its replicas is requested, and none of a disk's."""
    if look_up(call.body, ("spec", "evictionRequested")) is True:
        return failed("evictionRequested is true")
    disks = look_up(call.body, ("spec", "disks"))
    found = disks.items() if isinstance(disks, Mapping) else ()
    names = [str(name) for name, disk in found if look_up(disk, ("evictionRequested",)) is True]
    if names:
        return failed(f"evictionRequested is true for {', '.join(names)}")
    return passed("no eviction is requested")


def images_fit(call: RuleCall) -> Verdict:
    """Of claims that were made from an image: as large as what the image holds, in whole GiB."""
    found = listed(call, _CLAIMS, _IMAGES)
    if isinstance(found, Verdict):
        return found
    claims, images = found
    sizes = {f"{ref_of(image).namespace}/{ref_of(image).name}": _virtual_size(image) for image in images}
    of_image = ((claim, str(look_up(claim, ("metadata", "annotations", _IMAGE)) or "")) for claim in claims)
    return all_of((_fits(claim, name, sizes[name]) for claim, name in of_image if sizes.get(name)), "claims")


def _virtual_size(image: Body) -> int:
    size = look_up(image, ("status", "virtualSize"))
    return size if isinstance(size, int) and not isinstance(size, bool) else 0


def _fits(claim: Body, image: str, size: int) -> Verdict:
    stated = look_up(claim, ("spec", "resources", "requests", "storage"))
    requested, expected = quantity_of(stated), -(-size // _GIB)
    if requested is None or requested >= expected * _GIB:
        return passed(f"it requests {stated}")
    return failed(
        f"it requests {stated}, and image {image} holds {size} bytes: it has to be {expected}Gi", ref_of(claim)
    )


# ------------------------------------------------------------------------------------------------------------ look-ups


def _by_volume(replicas: Iterable[Body]) -> Mapping[str, Sequence[Body]]:
    found: dict[str, list[Body]] = defaultdict(list)
    for replica in replicas:
        found[_text(replica, "spec", "volumeName")].append(replica)
    return found


def _state(volume: Body) -> str:
    return _text(volume, "status", "state")


def _is_intact(replica: Body) -> bool:
    """True if its data has been whole and nothing is known to have happened to it since."""
    return bool(_text(replica, "spec", "healthyAt")) and not _text(replica, "spec", "failedAt")


def _is_healthy(replica: Body) -> bool:
    return _is_intact(replica) and _text(replica, "status", "currentState") == "running"


def _text(body: Any, *path: str) -> str:
    return text_at(body, *path) or ""
