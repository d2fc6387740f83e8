"""Fleet's settings for the kinds of a bundle. Fleet takes no rules: it reads the types of conditions that it knows, and
waits for Jobs if it is configured to. What it cannot judge needs a gate's Job in the bundle.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from renderer.catalog.kinds import KindRow, Kinds
from renderer.delivery.health.health_rule import health_rule, judged_by_others
from renderer.frozen import frozen


@frozen
class FleetHealth:
    """Settings of `fleet.yaml`: `helm.waitForJobs` (which needs `helm.timeoutSeconds`), `ignore.conditions` as pairs of
    type and status (for all objects of the bundle, so that an object with such conditions needs one of its own), and
    the kinds (API version and kind) that Fleet would take for ready too early."""

    wait_for_jobs: bool
    ignored_conditions: tuple[tuple[str, str], ...]
    unjudged: tuple[tuple[str, str], ...]

    def context(self) -> dict[str, Any]:
        """The names that templates see."""
        ignored = [{"type": type_, "status": status} for type_, status in self.ignored_conditions]
        return {"waitForJobs": self.wait_for_jobs, "ignoredConditions": ignored}


def fleet_health(kinds: Kinds, used: Iterable[tuple[str, str]]) -> FleetHealth:
    """For the kinds (API version and kind) of one bundle."""
    present = sorted(set(used))
    rows = [row for kind in present if (row := kinds.find(*kind))]
    misjudged = [(row.kind.api_version, row.kind.kind) for row in rows if _is_misjudged(row)]
    return FleetHealth(
        wait_for_jobs=("batch/v1", "Job") in present,
        ignored_conditions=tuple(pair for row in rows for pair in row.not_readiness),
        unjudged=tuple(sorted({*misjudged, *judged_by_others(kinds, present)})),
    )


def _is_misjudged(row: KindRow) -> bool:
    """True for a custom kind. Where the row says which conditions to ignore, Fleet is right by the others."""
    rule = health_rule(row)
    return rule is not None and rule.is_custom and not row.not_readiness
