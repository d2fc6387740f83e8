"""States of a node in an upgrade: ten ordinals, and the rule that a node only moves forward (behaviour spec 1.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

ORDINALS: Mapping[str, int] = {
    state: ordinal
    for ordinal, states in enumerate(
        (
            ("ImagePreloading",),
            ("ImagePreloaded", "ImagePreloadFailed"),
            ("UpgradePaused",),
            ("PreDraining", "SingleNodeUpgrading"),
            ("PreDrained", "PreDrainFailed"),
            ("PostDraining",),
            ("WaitingReboot",),
            ("PostDrained", "PostDrainFailed", "SingleNodeUpgraded", "SingleNodeUpgradeFailed"),
            ("ImageCleaning",),
            ("ImageCleaned", "ImageCleanFailed"),
        )
    )
    for state in states
}


def is_ahead(state: str | None, other: str) -> bool:
    """Whether a node in `state` is past `other`. A node without a state, or with an unknown one, is past nothing."""
    return ORDINALS.get(state or "", -1) > ORDINALS.get(other, -1)


def moved(entry: Mapping[str, Any] | None, state: str, reason: str = "", message: str = "") -> Mapping[str, Any]:
    """A node's entry after a proposed state; the entry as it is where the node is past that state already."""
    if entry and is_ahead(entry.get("state"), state):
        return entry
    return {key: value for key, value in {"state": state, "reason": reason, "message": message}.items() if value}
