"""The version guard: which release may be upgraded to which."""

from __future__ import annotations

from reconcile.probes.rules.call import RuleCall, parse_bool
from reconcile.probes.verdict import Verdict, failed, passed
from renderer.versions import explained_refusal


def eligible(call: RuleCall) -> Verdict:
    current, target, minimum = (call.text(name) for name in ("current", "target", "minimum"))
    strict = parse_bool(call.text("strict")) is not False
    return judge_versions(current=current, target=target, minimum=minimum, strict=strict)


def judge_versions(*, current: str, target: str, minimum: str, strict: bool) -> Verdict:
    """A version that is not known is a refusal in the existing manager's words. What a missing minimum lets pass is a
    warning."""
    refused = _refusal(current, target, minimum, strict)
    if refused:
        return failed(refused)
    if not minimum:
        return passed(f"{current} may be upgraded to {target}", _NO_MINIMUM.format(target=target))
    return passed(f"{current} may be upgraded to {target} (minimum {minimum})")


_NO_MINIMUM = "release {target} has no minUpgradableVersion, so nothing restricts the version to upgrade from"


def _refusal(current: str, target: str, minimum: str, strict: bool) -> str | None:
    if not target:
        return "release metadata is not available in UpgradePlan status"
    if not current:
        return "previous version is not available in UpgradePlan status"
    return explained_refusal(current=current, target=target, minimum=minimum, strict=strict)
