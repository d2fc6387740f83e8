"""The named rules, one row each. Their names and arguments are declared in `renderer.catalog.rules`."""

from __future__ import annotations

from collections.abc import Mapping

from reconcile.probes.rules import certificates, disk, node_plans, readiness, version
from reconcile.probes.rules.call import Rule
from renderer.catalog.rules import misused
from renderer.errors import problem

RULES: Mapping[str, Rule] = {
    "podReady": readiness.pod_ready,
    "serviceHasReadyEndpoint": readiness.has_ready_endpoint,
    "addonSettled": readiness.addon_settled,
    "jobFailed": node_plans.job_failed,
    "versionEligible": version.eligible,
    "diskHeadroom": disk.headroom,
    "certificateExpiry": certificates.expiry,
}


def rule_named(name: str) -> Rule:
    """Raises `Problems` for a name that no rule has."""
    if name not in RULES:
        raise problem("InvalidRule", misused(name, ()) or f"rule {name} cannot be carried out")
    return RULES[name]
