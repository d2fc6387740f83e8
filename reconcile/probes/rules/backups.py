"""Checks that virtual machines have recent backups, and that Harvester looks at its backup target now and then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from reconcile.probes.look import Group
from reconcile.probes.rules.call import RuleCall, all_of, listed, parse_json
from reconcile.probes.rules.live_migration import is_the_upgrades
from reconcile.probes.verdict import Verdict, failed, passed, unknown
from renderer.model.path import look_up
from renderer.model.ref import Body, ref_of

_MACHINES = Group(api_version="kubevirt.io/v1", kind="VirtualMachine")
_BACKUPS = Group(api_version="harvesterhci.io/v1beta1", kind="VirtualMachineBackup")


def recent(call: RuleCall) -> Verdict:
    """Of every VirtualMachine: a backup outside the cluster that is complete and not older than `days`."""
    found = listed(call, _MACHINES, _BACKUPS)
    if isinstance(found, Verdict):
        return found
    machines, backups = found
    newest, days = _newest(backups), call.number("days")
    users = (machine for machine in machines if not is_the_upgrades(machine))
    return all_of((_recent(machine, newest, call.now, days) for machine in users), "virtual machines")


def _newest(backups: Iterable[Body]) -> Mapping[tuple[str, str], datetime]:
    """The time of the newest complete backup, by the machine's namespace and name."""
    found: dict[tuple[str, str], datetime] = {}
    for backup in backups:
        made = _time(backup)
        if made is None or not _is_complete(backup):
            continue
        machine = ref_of(backup).namespace, str(look_up(backup, ("spec", "source", "name")))
        found[machine] = max(made, found.get(machine, made))
    return found


def _is_complete(backup: Body) -> bool:
    """A snapshot stays in the cluster, and is no backup."""
    return look_up(backup, ("status", "readyToUse")) is True and look_up(backup, ("spec", "type")) != "snapshot"


def _time(backup: Body) -> datetime | None:
    stated = look_up(backup, ("status", "creationTime")) or look_up(backup, ("metadata", "creationTimestamp"))
    try:
        made = datetime.fromisoformat(str(stated))
    except ValueError:
        return None
    return made if made.tzinfo else made.replace(tzinfo=UTC)


def _recent(machine: Body, newest: Mapping[tuple[str, str], datetime], now: datetime, days: int) -> Verdict:
    ref = ref_of(machine)
    made = newest.get((ref.namespace, ref.name))
    if made is None:
        return failed("it has no backup", ref)
    if now - made > timedelta(days=days):
        return failed(f"its newest backup is of {made:%Y-%m-%d}, older than {days} days", ref)
    return passed(f"its newest backup is of {made:%Y-%m-%d}")


def target_refreshed(call: RuleCall) -> Verdict:
    """Of the Setting backup-target: a target that is set has a refresh interval."""
    text = look_up(call.body, ("value",)) or look_up(call.body, ("default",))
    if not isinstance(text, str) or not text:
        return passed("no backup target is set")
    target = parse_json(text)
    if not isinstance(target, Mapping):
        return unknown("its value is not a JSON object")
    if not target.get("type") or target.get("refreshIntervalInSeconds"):
        return passed("the backup target has a refresh interval, or none is set")
    return failed("refreshIntervalInSeconds is empty or 0")
