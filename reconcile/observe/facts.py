"""The cluster's objects that rendering starts from: nodes, machines, their plan Secrets, versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconcile.observe.selection import MACHINE_PLANS
from reconcile.observe.source import Source
from reconcile.probes.look import Group, ReadFailure
from renderer.errors import ExitCode, Problem, Problems
from renderer.model.ref import Body, Ref

_HARVESTER = "harvesterhci.io/v1beta1"
_GROUPS = (
    Group(api_version="v1", kind="Node"),
    Group(api_version="cluster.x-k8s.io/v1beta1", kind="Machine", namespace="fleet-local"),
    MACHINE_PLANS,
)
SERVER_VERSION = Ref(api_version=_HARVESTER, kind="Setting", name="server-version")


class Unreadable(Problems):
    """All objects that could not be read, each with the rule that would grant it."""

    def __init__(self, refused: Iterable[Problem]) -> None:
        super().__init__(refused, ExitCode.CLUSTER)


def gather(source: Source, plan: Body) -> tuple[Body, ...]:
    """The objects. Raises `Unreadable`: half a cluster must not be rendered from."""
    found, refused = readable_and_refused(source, plan)
    if refused:
        raise Unreadable(refused)
    return found


def what_is_readable(source: Source, plan: Body) -> tuple[Body, ...]:
    """Those objects that can be read; the caller reports the others."""
    return readable_and_refused(source, plan)[0]


def refusals(source: Source, plan: Body) -> tuple[Problem, ...]:
    """All of that which cannot be read."""
    return readable_and_refused(source, plan)[1]


def readable_and_refused(source: Source, plan: Body) -> tuple[tuple[Body, ...], tuple[Problem, ...]]:
    """Those objects that can be read, and a problem for each that cannot."""
    found: list[Body] = []
    refused: list[Problem] = []
    for group in _GROUPS:
        items = source.list(group)
        if isinstance(items, ReadFailure):
            refused.append(unreadable(f"{group.kind} objects", items))
        else:
            found += items
    for ref in _refs(plan.get("spec") or {}):
        body = source.get(ref)
        if isinstance(body, ReadFailure):
            refused.append(unreadable(str(ref), body))
        elif body is not None:
            found.append(body)
    return tuple(found), tuple(refused)


def unreadable(what: str, read_failures: ReadFailure) -> Problem:
    """`what` in words: `Node objects`, `Setting server-version`."""
    return Problem(
        reason="Unreadable", message=f"{what} cannot be read: {read_failures.why}", remedy=read_failures.remedy
    )


def _refs(spec: Mapping[str, Any]) -> tuple[Ref, ...]:
    version = spec.get("version")
    if not version:
        return (SERVER_VERSION,)
    expected = Ref(api_version=_HARVESTER, kind="Version", namespace="harvester-system", name=version)
    return (SERVER_VERSION, expected)
