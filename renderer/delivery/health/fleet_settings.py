"""Fleet's settings for the kinds of a bundle. Fleet takes no rules: it reads the types of conditions that it knows, and
waits for Jobs if it is configured to. What it cannot judge needs a gate's Job in the bundle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from renderer.catalog.kinds import Kinds
from renderer.delivery.health.health_rule import health_rule, judged_by_others
from renderer.frozen import frozen
from renderer.model.plan_api import PLAN_API_VERSION


@frozen
class FleetHealth:
    """Settings of `fleet.yaml`: `helm.waitForJobs` (which needs `helm.timeoutSeconds`), `ignore.conditions` as pairs of
    type and status, and the kinds (API version and kind) that Fleet would take for ready too early."""

    wait_for_jobs: bool
    ignored_conditions: tuple[tuple[str, str], ...]
    unjudged: tuple[tuple[str, str], ...]


def fleet_health(kinds: Kinds, used: Iterable[tuple[str, str]]) -> FleetHealth:
    """For the kinds (API version and kind) of one bundle."""
    present = sorted(set(used))
    misjudged = [kind for kind in present if _is_misjudged(kinds, kind)]
    return FleetHealth(
        wait_for_jobs=("batch/v1", "Job") in present,
        ignored_conditions=tuple(pair for kind in present for pair in _IGNORED.get(kind, ())),
        unjudged=tuple(sorted({*misjudged, *judged_by_others(kinds, present)})),
    )


def _is_misjudged(kinds: Kinds, kind: tuple[str, str]) -> bool:
    row = kinds.find(*kind)
    rule = health_rule(row) if row is not None else None
    return rule is not None and rule.is_custom and kind not in _IGNORED


_IGNORED: Mapping[tuple[str, str], tuple[tuple[str, str], ...]] = {
    # Available is about another plan's chance to begin; Fleet takes False for an update that has not ended.
    (PLAN_API_VERSION, "UpgradePlan"): (("Available", "False"),),
}
"""Conditions that do not describe readiness, of the custom kinds that Fleet judges by the others. The settings hold for
all objects of a bundle, so such an object needs a bundle of its own."""
