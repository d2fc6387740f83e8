"""Which permissions applying a manifest takes, and the ready-made rule for those that are missing."""

from __future__ import annotations

import json
from collections.abc import Sequence

from reconcile.cluster.permission import Permission, permission
from reconcile.cluster.protocol import Cluster
from renderer.model.ref import Kind
from renderer.model.rendered import Manifest

_OWNED = ("get", "create", "patch")
_BORROWED = ("get", "patch")


def missing_permissions(cluster: Cluster, kind: Kind, manifest: Manifest) -> tuple[Permission, ...]:
    """What of all that the manifest takes is not granted; asked once a first refusal has come."""
    verbs = _BORROWED if manifest.borrowed else _OWNED
    wanted = (permission(verb, kind, namespace=manifest.ref.namespace, name=manifest.ref.name) for verb in verbs)
    return tuple(item for item in wanted if not cluster.review(item).allowed)


def remedy_for(missing: Sequence[Permission]) -> str:
    """One rule that grants them all. They are on one resource."""
    first = missing[0]
    verbs = [item.verb for item in missing]
    rule = {"apiGroups": [first.group], "resources": [first.resource], "verbs": verbs}
    role = f"a Role in namespace {first.namespace}" if first.namespace else "a ClusterRole"
    return f"add to {role}: {json.dumps(rule)}"
