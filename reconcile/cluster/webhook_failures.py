"""Explains why the API server could not call an admission webhook, and what to do about it. Pure.

Source: what kube-apiserver 1.35.4 answered when tried; the texts are those of Go's net/http and crypto/tls.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_OURS = "vupgradeplan"
_DEPLOYMENT = "kubectl -n harvester-system get pods -l control-plane=controller-manager"
_WITHOUT = (
    "to create a plan without it, delete the ValidatingWebhookConfiguration "
    "(kubectl get validatingwebhookconfigurations); the manager carries out the same checks before the plan begins"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFailure:
    """`says` is what happened in words; `passes`: it may get better by waiting. The remedy of `ours` is for the webhook
    that this program serves, the other one for those of others."""

    pattern: re.Pattern[str]
    says: str
    passes: bool = True
    ours: str
    others: str


_FAILURES = (
    CallFailure(
        pattern=re.compile(r"x509:|tls: "),
        says="its certificate is not accepted",
        passes=False,
        ours=f"the manager writes certificate and caBundle when it leads: see its log ({_DEPLOYMENT})",
        others="renew its certificate, or the caBundle of its configuration",
    ),
    CallFailure(
        pattern=re.compile(r"no endpoints available"),
        says="no pod that serves it is ready",
        ours=f"start the manager ({_DEPLOYMENT}) and retry",
        others="check the pods that serve it",
    ),
    CallFailure(
        pattern=re.compile(r'service "[^"]*" not found|no service port'),
        says="its Service does not exist",
        ours="install the manager again: upgradeplan install --format plain | kubectl apply --server-side -f -",
        others="install what serves it again, or delete its configuration",
    ),
    CallFailure(
        pattern=re.compile(r"deadline exceeded|Client\.Timeout|i/o timeout"),
        says="it did not answer in time",
        ours="retry; raise webhook.timeoutSeconds of the installation if the cluster is large",
        others="wait and retry; check the pods that serve it",
    ),
)
_OTHER = CallFailure(
    pattern=re.compile(""),
    says="it could not be asked",
    ours=f"start the manager ({_DEPLOYMENT}) and retry",
    others="wait and retry; if it persists, check the pods that serve it",
)


def call_failure(why: str) -> CallFailure:
    """The kind of failure that the API server's text means."""
    return next((item for item in _FAILURES if item.pattern.search(why)), _OTHER)


def remedy_for(failure: CallFailure, webhook: str) -> str:
    return f"{failure.ours}; {_WITHOUT}" if webhook.startswith(_OURS) else failure.others
