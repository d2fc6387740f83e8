"""The named rules, one row each. Their names and arguments are declared in `renderer.catalog.rules`."""

from __future__ import annotations

from collections.abc import Mapping

from reconcile.probes.rules import certificates, disk, node_plans, readiness, version
from reconcile.probes.rules.call import NamedRule
from renderer.catalog.rules import misused
from renderer.errors import problem

RULES: Mapping[str, NamedRule] = {
    "podReady": NamedRule(judge=readiness.pod_ready),
    "serviceHasReadyEndpoint": NamedRule(judge=readiness.has_ready_endpoint, needs=readiness.service_needs),
    "addonSettled": NamedRule(judge=readiness.addon_settled),
    "jobFailed": NamedRule(judge=node_plans.job_failed, needs=node_plans.needs),
    "versionEligible": NamedRule(judge=version.eligible),
    "diskHeadroom": NamedRule(judge=disk.headroom, needs=disk.needs),
    "certificateExpiry": NamedRule(judge=certificates.expiry, needs=certificates.needs),
}


def rule_named(name: str) -> NamedRule:
    """Raises `Problems` for a name that no rule has."""
    if name not in RULES:
        raise problem("InvalidRule", misused(name, ()) or f"rule {name} cannot be carried out")
    return RULES[name]
