"""Decides whether a plan's versions allow the upgrade, as `version-guard` of the upgrade toolkit: by what the plan's
status says of the release and of the version that ran before."""

from __future__ import annotations

from reconcile.probes.rules.version import judge_versions
from reconcile.probes.verdict import Verdict
from renderer.context.facts import text_at
from renderer.model.ref import Body


def guard(plan: Body, *, strict: bool, minimum: str = "") -> Verdict:
    """`minimum` replaces the release's own; empty leaves it."""
    return judge_versions(
        current=_text(plan, "previousVersion"),
        target=_text(plan, "releaseMetadata", "harvester"),
        minimum=minimum or _text(plan, "releaseMetadata", "minUpgradableVersion"),
        strict=strict,
    )


def _text(plan: Body, *path: str) -> str:
    return text_at(plan, "status", *path) or ""
