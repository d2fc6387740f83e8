"""Compares what a node's host reports: files, partitions, its clock. A host that has not reported is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from reconcile.probes.field_predicate import check_field
from reconcile.probes.look import HOSTS, ReadFailure
from reconcile.probes.rules.call import RuleCall
from reconcile.probes.verdict import Verdict, failed, passed, unknown
from renderer.catalog.probes import field_from
from renderer.model.path import ABSENT, Path, look_up, path_name
from renderer.model.plan_api import PREFIX

_HOURS = "validHours"
"""Argument: for how long a report counts. A report that does not say when it was made counts always."""
_AGAIN = f"{PREFIX}look-at-hosts-again"


def reports(call: RuleCall) -> Verdict:
    """The arguments are those of the predicate `field`, about the report in place of the object. What a report does not
    say nobody knows."""
    report = _report(call)
    if isinstance(report, Verdict):
        return report
    field = field_from({key: value for key, value in call.arguments.items() if key != _HOURS})
    if look_up(report, field.path) is ABSENT:
        return unknown(f"its host does not report {path_name(field.path)}{_why_not(report, field.path)}")
    verdict = check_field(field, report, call.scope)
    return replace(verdict, reason=f"its host reports {verdict.reason}")


def certificate(call: RuleCall) -> Verdict:
    """The certificate that ends first is valid for so many days more; one that could not be read may end before."""
    report = _report(call)
    if isinstance(report, Verdict):
        return report
    end = _time(look_up(report, ("certificate", "notAfter")))
    unread = _why_not(report, ("certificate",))
    if end is None:
        return unknown(f"its host reports no certificate{unread}")
    file = look_up(report, ("certificate", "file")) or "a certificate"
    says = f"its host reports that {file} {'expires' if end > call.now else 'expired'} on {end:%Y-%m-%d}"
    if end < call.now + timedelta(days=call.number("days")):
        return failed(says)
    return unknown(f"its host does not report every certificate{unread}") if unread else passed(says)


def _report(call: RuleCall) -> Mapping[str, Any] | Verdict:
    """The report of the node's host; unknown if there is none, or only one that is older than it counts."""
    report = call.look.reading(HOSTS, call.object.name)
    if isinstance(report, ReadFailure):
        return unknown(f"its host has not reported: {report.text}")
    at, hours = _time(report.get("reportedAt")), call.number(_HOURS)
    if at is None or not hours or call.now <= at + timedelta(hours=hours):
        return report
    return unknown(
        f"its host reported at {at:%Y-%m-%d %H:%M} UTC, which is valid for {hours} hours; to check it again, set"
        f" annotation {_AGAIN} of the plan"
    )


def _why_not(report: Mapping[str, Any], path: Path) -> str:
    """Returns what the report says of what is not in it, for the end of a message; empty if it says nothing."""
    said = report.get("couldNotLook") or {}
    names = [".".join(map(str, path[:length])) for length in range(len(path), 0, -1)]
    return next((f": {said[name]}" for name in names if name in said), "")


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else None
