"""The cluster's objects that rendering starts from: nodes, machines, their plan Secrets, versions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconcile.observe.source import Source
from reconcile.probes.look import Group, Unseen
from renderer.errors import Problem, Problems
from renderer.model.ref import Body, Ref

_HARVESTER = "harvesterhci.io/v1beta1"
MACHINE_PLANS = Group(api_version="v1", kind="Secret", namespace="fleet-local")
MACHINE_PLAN_FIELDS = "type=rke.cattle.io/machine-plan"
_GROUPS: tuple[tuple[Group, str], ...] = (
    (Group(api_version="v1", kind="Node"), ""),
    (Group(api_version="cluster.x-k8s.io/v1beta1", kind="Machine", namespace="fleet-local"), ""),
    (MACHINE_PLANS, MACHINE_PLAN_FIELDS),
)
SERVER_VERSION = Ref(api_version=_HARVESTER, kind="Setting", name="server-version")


def gather(source: Source, plan: Body) -> tuple[Body, ...]:
    """The objects. Raises `Problems` where one of them cannot be read: half a cluster must not be rendered from."""
    found: list[Body] = []
    for group, fields in _GROUPS:
        items = source.list(group, fields)
        if isinstance(items, Unseen):
            raise _unread(f"{group.kind} objects", items)
        found += items
    for ref in _refs(plan.get("spec") or {}):
        body = source.get(ref)
        if isinstance(body, Unseen):
            raise _unread(str(ref), body)
        found += [body] if body is not None else []
    return tuple(found)


def _refs(spec: Mapping[str, Any]) -> tuple[Ref, ...]:
    version = spec.get("version")
    if not version:
        return (SERVER_VERSION,)
    wanted = Ref(api_version=_HARVESTER, kind="Version", namespace="harvester-system", name=version)
    return (SERVER_VERSION, wanted)


def _unread(what: str, unseen: Unseen) -> Problems:
    return Problems([Problem(reason="Unreadable", message=f"{what} cannot be read: {unseen.why}")])
