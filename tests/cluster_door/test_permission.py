"""A permission reads well, and its rule is the narrowest that RBAC understands."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from cluster_door.kinds import CONFIG_MAP, NODE, UPGRADE_PLAN
from reconcile.cluster.errors import Forbidden
from reconcile.cluster.protocol import Permission, permission


def rule(group: str, resource: str, verb: str, name: str = "") -> Mapping[str, list[str]]:
    named = {"resourceNames": [name]} if name else {}
    return {"apiGroups": [group], "resources": [resource], "verbs": [verb], **named}


@pytest.mark.parametrize(
    ("asked", "text", "expected"),
    [
        (
            permission("get", CONFIG_MAP, namespace="n", name="a"),
            "get configmaps a in namespace n",
            rule("", "configmaps", "get", "a"),
        ),
        (
            permission("patch", UPGRADE_PLAN, subresource="status", name="p"),
            "patch upgradeplans/status.management.harvesterhci.io p",
            rule("management.harvesterhci.io", "upgradeplans/status", "patch", "p"),
        ),
        (permission("get", NODE, subresource="proxy/stats/summary"), "get nodes/proxy", rule("", "nodes/proxy", "get")),
        (permission("create", CONFIG_MAP, name="a"), "create configmaps a", rule("", "configmaps", "create")),
        (permission("list", CONFIG_MAP, name="a"), "list configmaps a", rule("", "configmaps", "list")),
        (permission("watch", CONFIG_MAP, name="a"), "watch configmaps a", rule("", "configmaps", "watch")),
    ],
)
def test_permission(asked: Permission, text: str, expected: Mapping[str, list[str]]) -> None:
    assert (str(asked), asked.rule()) == (text, expected)
    assert Forbidden(asked).message == f"not allowed: {text}"
