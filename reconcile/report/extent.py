"""Describes the extent of an upgrade in one line, for the question whether to start it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from reconcile.observe.facts import SERVER_VERSION
from reconcile.observe.source import Source
from reconcile.probes.look import Group, ReadFailure
from renderer.model.ref import Body

_NODES = Group(api_version="v1", kind="Node")
_MACHINES = Group(api_version="kubevirt.io/v1", kind="VirtualMachineInstance")


def extent_of(source: Source, plan: Body, phases: int) -> str:
    """`from v1.7.1 to v1.8.0: 8 phases, 3 nodes rebooted in turn, 3 VMs moved or stopped`; what cannot be read is left
    out."""
    counts = [f"{phases} phases", *_counted(source, _NODES, "node", "rebooted", "rebooted in turn")]
    counts += _counted(source, _MACHINES, "VM", "moved or stopped", "moved or stopped")
    return f"{_versions(source, plan)}: {', '.join(counts)}"


def _versions(source: Source, plan: Body) -> str:
    setting = source.get(SERVER_VERSION)
    recorded = (plan.get("status") or {}).get("previousVersion")
    now = recorded or (setting.get("value") if isinstance(setting, Mapping) else None)
    target = plan["spec"].get("version") or plan["spec"].get("image")
    return f"from {now} to {target}" if now else f"to {target}"


def _counted(source: Source, group: Group, noun: str, one: str, many: str) -> Iterator[str]:
    found = source.list(group)
    if not isinstance(found, ReadFailure) and found:
        yield f"1 {noun} {one}" if len(found) == 1 else f"{len(found)} {noun}s {many}"
