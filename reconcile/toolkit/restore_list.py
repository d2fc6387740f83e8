"""The list of virtual machines to start again: a ConfigMap of the plan, with an entry for each node.

An entry is `namespace/name,namespace/name`. Names are only ever added, so that a second run, which finds those machines
off already, does not forget them; the restart removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from reconcile import objects
from reconcile.cluster.errors import AlreadyExists, Away, Conflict, NotFound
from reconcile.cluster.protocol import Cluster
from renderer.model.path import look_up
from renderer.model.plan_api import PLAN_API_VERSION
from renderer.model.ref import Body, Kind, Ref
from renderer.names import detector_name, safe_concat

CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap", plural="configmaps", namespaced=True)
NAMESPACE = "harvester-system"
_SUFFIX = "restore-vm"
_TRIES = 5  # as client-go's default back-off
_T = TypeVar("_T")


def list_refs(plan: str) -> tuple[Ref, ...]:
    """The names that the list may have: detectors have shortened a long plan's name in two ways. The first is the one
    that a new list gets."""
    names = dict.fromkeys((detector_name(plan, _SUFFIX), safe_concat(plan, _SUFFIX)))
    return tuple(Ref(api_version="v1", kind="ConfigMap", namespace=NAMESPACE, name=name) for name in names)


def find_list(cluster: Cluster, plan: str) -> Body | None:
    """The list; None if there is none."""
    for ref in list_refs(plan):
        try:
            return cluster.get(CONFIG_MAP, ref).body
        except NotFound:
            continue
    return None


def names_in(config_map: Body | None, node: str) -> tuple[str, ...]:
    """The node's entry, one by one; none where it is absent or blank."""
    text = look_up(config_map or {}, ("data", node))
    return tuple(filter(None, map(str.strip, str(text or "").split(","))))


def joined(old: Iterable[str], names: Iterable[str]) -> str:
    """An entry with more names: each once, those that were there first."""
    return ",".join(dict.fromkeys((*old, *names)))


def new_list(plan: Body, node: str, names: Iterable[str]) -> Body:
    """It goes when the plan goes."""
    (ref, *_), uid = list_refs(_name(plan)), objects.uid(plan)
    owner = {"apiVersion": PLAN_API_VERSION, "kind": "UpgradePlan", "name": _name(plan), "uid": uid}
    owners = {"ownerReferences": [owner]} if uid else {}
    metadata = {"name": ref.name, "namespace": ref.namespace, **owners}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {node: joined((), names)}}


def add_names(cluster: Cluster, plan: Body, node: str, names: Sequence[str]) -> bool:
    """Adds names to the node's entry; whether the list was made for it. Raises `ClusterError`."""

    def add() -> bool:
        found = find_list(cluster, _name(plan))
        if found is None:
            cluster.create(CONFIG_MAP, new_list(plan, node, names))
            return True
        _write(cluster, found, node, joined(names_in(found, node), names))
        return False

    return _retried(add)


def take_out(cluster: Cluster, plan: str, node: str, names: Iterable[str]) -> None:
    """Leaves in the node's entry what is not among `names`. Raises `ClusterError`."""
    done = set(names)

    def take() -> None:
        found = find_list(cluster, plan)
        if found is not None:
            _write(cluster, found, node, ",".join(name for name in names_in(found, node) if name not in done))

    _retried(take)


def _retried(act: Callable[[], _T]) -> _T:
    """Reads and writes again where somebody else was quicker, or the server was away for a moment."""
    for _ in range(_TRIES - 1):
        try:
            return act()
        except (Conflict, Away, AlreadyExists):
            continue
    return act()


def _write(cluster: Cluster, config_map: Body, node: str, text: str) -> None:
    if look_up(config_map, ("data", node)) == text:
        return
    metadata = config_map["metadata"]
    ref = Ref(api_version="v1", kind="ConfigMap", namespace=metadata["namespace"], name=metadata["name"])
    patch = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "data": {node: text}}
    cluster.patch(CONFIG_MAP, ref, patch)


def _name(plan: Body) -> str:
    return str(plan["metadata"]["name"])
