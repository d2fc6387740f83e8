"""Compares what a node's host reports: files, partitions, its clock. A host that has not reported is unknown."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from reconcile.probes.field_predicate import check_field
from reconcile.probes.look import HOSTS, ReadFailure
from reconcile.probes.rules.call import RuleCall
from reconcile.probes.verdict import Verdict, failed, passed, unknown
from renderer.catalog.probes import field_from
from renderer.model.path import ABSENT, look_up, path_name


def reports(call: RuleCall) -> Verdict:
    """The arguments are those of the predicate `field`, about the report in place of the object. What a report does not
    say nobody knows."""
    report = call.look.reading(HOSTS, call.object.name)
    if isinstance(report, ReadFailure):
        return unknown(f"its host has not reported: {report.text}")
    field = field_from(call.arguments)
    if look_up(report, field.path) is ABSENT:
        return unknown(f"its host does not report {path_name(field.path)}")
    verdict = check_field(field, report, call.scope)
    return replace(verdict, reason=f"its host reports {verdict.reason}")


def certificate(call: RuleCall) -> Verdict:
    """The certificate that ends first is valid for so many days more."""
    report = call.look.reading(HOSTS, call.object.name)
    if isinstance(report, ReadFailure):
        return unknown(f"its host has not reported: {report.text}")
    end = _time(look_up(report, ("certificate", "notAfter")))
    if end is None:
        return unknown("its host reports no certificate")
    file = look_up(report, ("certificate", "file")) or "a certificate"
    says = f"its host reports that {file} {'expires' if end > call.now else 'expired'} on {end:%Y-%m-%d}"
    if end < call.now + timedelta(days=call.number("days")):
        return failed(says)
    return passed(says)


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return found.astimezone(UTC) if found.tzinfo else None
