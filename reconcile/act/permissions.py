"""The permissions that applying a manifest takes, and the ready-made rule for those that are missing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from reconcile.cluster.protocol import Cluster, Permission, permission
from renderer.model.ref import Kind
from renderer.model.rendered import Manifest

_OWNED = ("get", "create", "patch")
_BORROWED = ("get", "patch")
_NAME = ("metadata", "name")


class Reviews:
    """Asks what is granted, each question once, and for every name of a resource before it asks for one: a phase has
    many objects of one kind."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[Permission, bool] = {}

    def missing(self, kind: Kind, manifest: Manifest) -> tuple[Permission, ...]:
        """The permissions that the manifest takes and that are not granted. A name that is known at run time only is
        left out."""
        verbs = _BORROWED if manifest.borrowed else _OWNED
        name = "" if _NAME in manifest.run_time else manifest.ref.name
        expected = (permission(verb, kind, namespace=manifest.ref.namespace, name=name) for verb in verbs)
        return tuple(item for item in expected if not (self._granted(replace(item, name="")) or self._granted(item)))

    def _granted(self, asked: Permission) -> bool:
        if asked not in self._known:
            self._known[asked] = self._cluster.review(asked).allowed
        return self._known[asked]


def remedy_for(missing: Sequence[Permission]) -> str:
    """One rule that grants them all. They are on one resource."""
    first = missing[0]
    verbs = [item.verb for item in missing]
    rule = {"apiGroups": [first.group], "resources": [first.resource], "verbs": verbs}
    role = f"a Role in namespace {first.namespace}" if first.namespace else "a ClusterRole"
    return f"add to {role}: {json.dumps(rule)}"
