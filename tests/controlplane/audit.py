"""What the API server was asked, by whom, and what it answered: its audit log as values."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Bodies of everybody's requests but the control plane's own, which is many and of no interest.
POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "None", "users": ["system:apiserver", "system:kube-controller-manager"]},
        {"level": "None", "nonResourceURLs": ["/readyz*", "/livez*", "/healthz*"]},
        {"level": "Metadata", "userGroups": ["system:serviceaccounts:kube-system"]},
        {"level": "Request"},
    ],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One request. `user` is the one acted for if impersonated; `body` is what was sent, None if nothing was."""

    audit_id: str
    verb: str
    uri: str
    user: str
    user_agent: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    code: int
    body: Any

    def __str__(self) -> str:
        return f"{self.verb} {self.uri} {self.code}"


def read(log: Path, offset: int = 0) -> tuple[AuditEvent, ...]:
    """One event a request, in the order in which they were answered; a watch counts from its start. A line that was
    half written at `offset` is of before."""
    with log.open("rb") as file:
        file.seek(max(offset - 1, 0))
        if offset:
            file.readline()
        lines = file.read().splitlines(keepends=True)
    return _one_each(_event(json.loads(line)) for line in lines if line.endswith(b"\n"))


def _one_each(events: Iterable[AuditEvent]) -> tuple[AuditEvent, ...]:
    """A watch is logged twice, when it starts and when it ends."""
    first: dict[str, AuditEvent] = {}
    for event in events:
        first.setdefault(event.audit_id, event)
    return tuple(first.values())


def _event(raw: dict[str, Any]) -> AuditEvent:
    ref = raw.get("objectRef", {})
    return AuditEvent(
        audit_id=raw["auditID"],
        verb=raw["verb"],
        uri=raw["requestURI"],
        user=raw.get("impersonatedUser", raw["user"]).get("username", ""),
        user_agent=raw.get("userAgent", ""),
        group=ref.get("apiGroup", ""),
        resource=ref.get("resource", ""),
        subresource=ref.get("subresource", ""),
        namespace=ref.get("namespace", ""),
        name=ref.get("name", ""),
        code=raw.get("responseStatus", {}).get("code", 0),
        body=raw.get("requestObject"),
    )
