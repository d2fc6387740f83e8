"""One permission, as RBAC and SelfSubjectAccessReview both name it. It asks nobody anything."""

from __future__ import annotations

import json
from dataclasses import dataclass

from renderer.model.ref import Body, Kind


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Permission:
    """`verb` on `resource` (with subresource as `nodes/proxy`). An empty namespace means all, or cluster scope."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {resource}{named}" + (f" in namespace {self.namespace}" if self.namespace else "")

    def rule(self) -> Body:
        """The PolicyRule that grants it; without resourceNames where a request carries no name."""
        rule: dict[str, list[str]] = {"apiGroups": [self.group], "resources": [self.resource], "verbs": [self.verb]}
        if self.name and self.verb not in ("create", "list", "watch"):
            rule["resourceNames"] = [self.name]
        return rule

    def rule_text(self) -> str:
        """The rule on one line; YAML readers take it as it is."""
        return json.dumps(self.rule())


def permission(verb: str, kind: Kind, *, subresource: str = "", namespace: str = "", name: str = "") -> Permission:
    """The permission for `verb` on a kind; of `proxy/stats/summary` RBAC sees `proxy` only."""
    resource = "/".join(filter(None, (kind.plural, subresource.partition("/")[0])))
    return Permission(verb=verb, group=kind.group, resource=resource, namespace=namespace, name=name)
