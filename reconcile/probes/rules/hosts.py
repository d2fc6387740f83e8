"""Compares what a node's host reports: files, partitions, its clock. A host that has not reported is unknown."""

from __future__ import annotations

from dataclasses import replace

from reconcile.probes.field_predicate import check_field
from reconcile.probes.look import HOSTS, ReadFailure
from reconcile.probes.rules.call import RuleCall
from reconcile.probes.verdict import Verdict, unknown
from renderer.catalog.probes import field_from


def reports(call: RuleCall) -> Verdict:
    """The arguments are those of the predicate `field`, about the report in place of the object."""
    report = call.look.reading(HOSTS, call.object.name)
    if isinstance(report, ReadFailure):
        return unknown(f"its host has not reported: {report.text}")
    verdict = check_field(field_from(call.arguments), report, call.scope)
    return replace(verdict, reason=f"its host reports {verdict.reason}")
