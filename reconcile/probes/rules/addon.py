"""A Harvester add-on that is neither being deployed nor being disabled."""

from __future__ import annotations

from reconcile.probes.rules.call import RuleCall
from reconcile.probes.verdict import Verdict, passed, waiting
from renderer.model.path import look_up

_ENABLED = ("AddonDeploySuccessful",)
_DISABLED = ("AddonDisabled", "")  # empty: never enabled


def settled(call: RuleCall) -> Verdict:
    enabled = look_up(call.body, ("spec", "enabled")) is True
    status = str(look_up(call.body, ("status", "status")) or "")
    settled = _ENABLED if enabled else _DISABLED
    says = f"it is {'enabled' if enabled else 'disabled'} and status.status is {status or 'empty'}"
    return passed(says) if status in settled else waiting(f"{says}, expected {settled[0]}")
