"""The version guard: which release may be upgraded to which."""

from __future__ import annotations

from reconcile.probes.rules.call import RuleCall, parse_bool
from reconcile.probes.verdict import Verdict, failed, passed
from renderer.versions import refusal


def eligible(call: RuleCall) -> Verdict:
    """A version that is not known is a refusal in the existing manager's words."""
    current, target, minimum = (call.text(name) for name in ("current", "target", "minimum"))
    if not target:
        return failed("release metadata is not available in UpgradePlan status")
    if not current:
        return failed("previous version is not available in UpgradePlan status")
    strict = parse_bool(call.text("strict")) is not False
    refused = refusal(current=current, target=target, minimum=minimum, strict=strict)
    if refused:
        return failed(refused)
    return passed(f"{current} may be upgraded to {target}" + (f" (minimum {minimum})" if minimum else ""))
